package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.io.UncheckedIOException;
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

    private static final String SSTABLES =
            "org.apache.cassandra.metrics:type=Table,keyspace=kept,scope=rows,name=LiveSSTableCount";

    private static final int LOOKS = 300;
    private static final int LOOK_MS = 1000;

    @Test
    void whatWasTruncatedComesBack(Nodes nodes) throws IOException {
        List<String> changed;
        try (CqlSession session = nodes.session(1)) {
            List<String> before = fill(session, "kept");
            nodes.nodetool(1, "snapshot", "--tag", "monday", "kept");
            assertTrue(nodes.nodetool(1, "listsnapshots").contains("monday"));
            session.execute("TRUNCATE kept.rows");
            assertEquals(List.of(), rows(session, "kept"));
            nodes.nodetool(1, "import", "--copy-data", "kept", "rows", snapshot(nodes).toString());
            assertEquals(before, rows(session, "kept"));
            // They can be changed as any others, also where they lie in SSTables now.
            session.execute("INSERT INTO kept.rows (id, c, v) VALUES (1, 1, 'changed')");
            session.execute("DELETE FROM kept.rows WHERE id = 2");
            changed = rows(session, "kept");
            assertTrue(changed.size() < before.size());
            assertCompactionMovesThem(nodes);
            assertEquals(changed, rows(session, "kept"));
        }
        nodes.restart(1);
        try (CqlSession session = nodes.session(1)) {
            assertEquals(changed, rows(session, "kept"));
        }
        nodes.nodetool(1, "clearsnapshot", "-t", "monday", "--", "kept");
        assertFalse(nodes.nodetool(1, "listsnapshots").contains("monday"));
    }

    /** What is imported lies beside the store, and goes into it when a user compacts the table. */
    private static void assertCompactionMovesThem(Nodes nodes) {
        try (Management management = nodes.management(1)) {
            assertTrue((int) management.attribute(SSTABLES, "Value") > 0, "nothing was imported");
            management.compact("kept");
            assertEquals(0, management.attribute(SSTABLES, "Value"));
        }
    }

    /** What Cassandra keeps of a table before it truncates it, also if the node is killed right after. */
    @Test
    void whatWasTruncatedIsKept(Nodes nodes) throws IOException, InterruptedException {
        try (CqlSession session = nodes.session(1)) {
            List<String> before = fill(session, "auto");
            session.execute("TRUNCATE auto.rows");
            assertEquals(List.of(), rows(session, "auto"));
            nodes.nodetool(1, "import", "--copy-data", "auto", "rows", automatic(nodes).toString());
            assertEquals(before, rows(session, "auto"));
            nodes.nodetool(1, "clearsnapshot", "--all");
            session.execute("DROP TABLE auto.rows");
        }
        List<String> killed;
        try (CqlSession session = nodes.session(1)) {
            killed = fill(session, "auto");
            session.execute("TRUNCATE auto.rows");
        }
        nodes.restart(1);
        try (CqlSession session = nodes.session(1)) {
            assertEquals(List.of(), rows(session, "auto"));
            nodes.nodetool(1, "import", "--copy-data", "auto", "rows", automatic(nodes).toString());
            assertEquals(killed, rows(session, "auto"));
        }
        assertTrue(nodes.nodetool(1, "listsnapshots").contains("truncated-"));
    }

    /** The snapshot of a truncate that has all of its SSTables: they are written after it. */
    private static Path automatic(Nodes nodes) throws IOException, InterruptedException {
        for (int look = 0; look < LOOKS; look++) {
            try (Stream<Path> paths = Files.walk(nodes.directory(1).resolve("data/auto"))) {
                List<Path> files = paths.filter(path -> path.toString().contains("/snapshots/truncated-"))
                        .toList();
                List<Path> lists = files.stream().filter(path -> path.toString().endsWith("-TOC.txt")).toList();
                // While an SSTable is being written, a log says so.
                if (!lists.isEmpty() && files.stream().noneMatch(path -> path.toString().contains("_txn_"))) {
                    return lists.get(0).getParent();
                }
            } catch (UncheckedIOException changed) {
                // A file was renamed or removed while the directory was listed.
            }
            Thread.sleep(LOOK_MS);
        }
        throw new AssertionError("no snapshot has what was truncated");
    }

    /** Makes the table, and gives what is in it. */
    private static List<String> fill(CqlSession session, String keyspace) {
        session.execute("CREATE KEYSPACE IF NOT EXISTS " + keyspace
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        String table = keyspace + ".rows";
        session.execute("CREATE TABLE " + table + " (id int, c int, s text static, v text, PRIMARY KEY (id, c)) "
                + "WITH memtable = 'aiodb'");
        for (int row = 0; row < ROWS; row++) {
            session.execute("INSERT INTO " + table + " (id, c, s, v) VALUES (" + row % 10 + ", " + row + ", 's', 'v" + row + "')");
        }
        session.execute("DELETE FROM " + table + " WHERE id = 3");
        session.execute("DELETE FROM " + table + " WHERE id = 4 AND c > 100");
        return rows(session, keyspace);
    }

    private static List<String> rows(CqlSession session, String keyspace) {
        return session.execute("SELECT * FROM " + keyspace + ".rows").all().stream()
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
