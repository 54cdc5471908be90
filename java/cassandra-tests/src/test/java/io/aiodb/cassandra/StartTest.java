package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.servererrors.UnauthorizedException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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

    /** A store that is to open asks system tables which node this is. */
    @Test
    void notWithSystemTablesInAStore(Nodes nodes) throws IOException {
        try (CqlSession session = nodes.session(1)) {
            for (String table : List.of("system.local", "system_schema.tables", "system_auth.roles", "system_traces.events")) {
                assertThrows(
                        UnauthorizedException.class,
                        () -> session.execute("ALTER TABLE " + table + " WITH memtable = 'aiodb'"));
            }
        }
        nodes.stop(1);
        withSettings(nodes, "inherits: skiplist", "inherits: aiodb", () -> {
            assertRefused(nodes, Map.of(), "default: inherits aiodb, so the system tables would be in a store");
        });
        nodes.start(1);
    }

    @Test
    void notWithAWeightOfReadsThatIsNone(Nodes nodes) {
        nodes.stop(1);
        assertRefused(
                nodes,
                Map.of("JVM_OPTIONS", "-Daiodb.read.cost.weight=much"),
                "-Daiodb.read.cost.weight=much: give the severity for each millisecond that a read takes");
        nodes.start(1);
    }

    @Test
    void withAWarningWhereTheCommitLogPromisesMore(Nodes nodes) throws IOException {
        String periodic = "commitlog_sync: periodic\ncommitlog_sync_period: 10000ms\n";
        nodes.stop(1);
        withSettings(nodes, periodic, "commitlog_sync: batch\n", () -> {
            nodes.start(1);
            assertTrue(nodes.log(1).anyMatch(line -> line.contains("WARN")
                    && line.contains("commitlog_sync: batch is beside the memtable configuration aiodb with durability: interval")));
            nodes.stop(1);
        });
        nodes.start(1);
    }

    private static void withSettings(Nodes nodes, String before, String after, Runnable then) throws IOException {
        Path settings = nodes.directory(1).resolve("cassandra.yaml");
        String all = Files.readString(settings);
        assertTrue(all.contains(before), all);
        Files.writeString(settings, all.replace(before, after));
        try {
            then.run();
        } finally {
            Files.writeString(settings, all);
        }
    }

    private static void assertRefused(Nodes nodes, Map<String, String> environment, String reason) {
        String why = nodes.whyNotStarted(1, environment);
        assertNotNull(why, () -> "the node started with " + environment);
        assertTrue(why.contains(reason), why);
    }
}
