package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** A node with a table in a store does not start without what the table needs, and loses nothing by it. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class StartTest {
    private static final String VERSION = "org/apache/cassandra/config/version.properties";

    @Test
    void notWithoutWhatTheTableNeeds(Nodes nodes, @TempDir Path classes) throws IOException {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE started WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE started.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
            session.execute("INSERT INTO started.rows (id, v) VALUES (1, 'kept')");
        }
        nodes.kill(1);
        Files.createDirectories(classes.resolve(VERSION).getParent());
        Files.writeString(classes.resolve(VERSION), "CassandraVersion=5.0.8\n");
        assertRefused(
                nodes,
                Map.of("CLASSES", classes.toString()),
                "was made for Apache Cassandra 5.0.9, and this is 5.0.8: take the jar for that version");
        assertRefused(nodes, Map.of("PLUGIN", classes + "/missing.jar"), "AiodbCompactionStrategy");
        nodes.start(1);
        try (CqlSession session = nodes.session(1)) {
            String kept = session.execute("SELECT v FROM started.rows WHERE id = 1").one().getString("v");
            assertEquals("kept", kept);
        }
    }

    private static void assertRefused(Nodes nodes, Map<String, String> environment, String reason) {
        String why = nodes.whyNotStarted(1, environment);
        assertNotNull(why, () -> "the node started with " + environment);
        assertTrue(why.contains(reason), why);
    }
}
