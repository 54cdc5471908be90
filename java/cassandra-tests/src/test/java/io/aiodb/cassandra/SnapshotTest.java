package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@code nodetool snapshot} keeps what a table in a store has, and {@code nodetool import} brings it back. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class SnapshotTest {
    private static final int ROWS = 500;

    @Test
    void whatWasTruncatedComesBack(Nodes nodes) throws IOException {
        List<String> changed;
        try (CqlSession session = nodes.session(1)) {
            List<String> before = fill(session);
            nodes.nodetool(1, "snapshot", "--tag", "monday", "kept");
            assertTrue(nodes.nodetool(1, "listsnapshots").contains("monday"));
            session.execute("TRUNCATE kept.rows");
            assertEquals(List.of(), rows(session));
            nodes.nodetool(1, "import", "--copy-data", "kept", "rows", snapshot(nodes).toString());
            assertEquals(before, rows(session));
            // They can be changed as any others, also where they lie in SSTables now.
            session.execute("INSERT INTO kept.rows (id, c, v) VALUES (1, 1, 'changed')");
            session.execute("DELETE FROM kept.rows WHERE id = 2");
            changed = rows(session);
            assertTrue(changed.size() < before.size());
        }
        nodes.restart(1);
        try (CqlSession session = nodes.session(1)) {
            assertEquals(changed, rows(session));
        }
        nodes.nodetool(1, "clearsnapshot", "-t", "monday", "--", "kept");
        assertFalse(nodes.nodetool(1, "listsnapshots").contains("monday"));
    }

    /** Makes the table, and gives what is in it. */
    private static List<String> fill(CqlSession session) {
        session.execute("CREATE KEYSPACE kept WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE kept.rows (id int, c int, s text static, v text, PRIMARY KEY (id, c)) "
                + "WITH memtable = 'aiodb'");
        for (int row = 0; row < ROWS; row++) {
            session.execute("INSERT INTO kept.rows (id, c, s, v) VALUES (" + row % 10 + ", " + row + ", 's', 'v" + row + "')");
        }
        session.execute("DELETE FROM kept.rows WHERE id = 3");
        session.execute("DELETE FROM kept.rows WHERE id = 4 AND c > 100");
        return rows(session);
    }

    private static List<String> rows(CqlSession session) {
        return session.execute("SELECT * FROM kept.rows").all().stream()
                .map(row -> row.getFormattedContents())
                .toList();
    }

    /** The directory with the SSTables of the snapshot. */
    private static Path snapshot(Nodes nodes) throws IOException {
        try (Stream<Path> paths = Files.walk(nodes.directory(1).resolve("data/kept"))) {
            return paths.filter(path -> path.endsWith("snapshots/monday")).findFirst().orElseThrow();
        }
    }
}
