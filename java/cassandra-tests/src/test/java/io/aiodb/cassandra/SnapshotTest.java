package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@code nodetool snapshot} keeps what a table in a store has, and {@code nodetool import} brings it back. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class SnapshotTest {
    private static final int ROWS = 500;
    private static final int FEW = 1000;
    private static final int MANY = 100_000;

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

    /** Imported SSTables lie beside the store, and go into it when a user compacts the table. */
    private static void assertCompactionMovesThem(Nodes nodes) {
        try (Management management = nodes.management(1)) {
            assertTrue((int) management.attribute(SSTABLES, "Value") > 0, "nothing was imported");
            management.compact("kept");
            assertEquals(0, management.attribute(SSTABLES, "Value"));
        }
    }

    /** The snapshot that Cassandra takes of a table before it truncates it, also if the node is killed right after. */
    @Test
    void whatWasTruncatedIsKept(Nodes nodes) throws IOException, InterruptedException {
        for (boolean killed : new boolean[] {false, true}) {
            String keyspace = "truncated_" + killed;
            List<String> before;
            try (CqlSession session = nodes.session(1)) {
                before = fill(session, keyspace);
                session.execute("TRUNCATE " + keyspace + ".rows");
                assertEquals(List.of(), rows(session, keyspace));
            }
            if (killed) {
                nodes.restart(1);
            }
            try (CqlSession session = nodes.session(1)) {
                assertEquals(List.of(), rows(session, keyspace));
                Path kept = automatic(nodes, keyspace, "truncated-");
                nodes.nodetool(1, "import", "--copy-data", keyspace, "rows", kept.toString());
                assertEquals(before, rows(session, keyspace));
            }
            assertTrue(nodes.nodetool(1, "listsnapshots").contains("truncated-"));
            nodes.nodetool(1, "clearsnapshot", "--all");
            assertFalse(nodes.nodetool(1, "listsnapshots").contains("truncated-"));
        }
    }

    /** The same of a table that is dropped, which the schema does not know any more when its rows are written. */
    @Test
    void whatWasDroppedIsKept(Nodes nodes) throws IOException, InterruptedException {
        for (boolean killed : new boolean[] {false, true}) {
            String keyspace = "dropped_" + killed;
            List<String> before;
            try (CqlSession session = nodes.session(1)) {
                fill(session, keyspace);
                // Rows that had another column once are read by what is known of it.
                session.execute("ALTER TABLE " + keyspace + ".rows DROP w");
                before = rows(session, keyspace);
                session.execute("DROP TABLE " + keyspace + ".rows");
                session.execute("DROP TYPE " + keyspace + ".place");
            }
            if (killed) {
                nodes.restart(1);
            }
            Path kept = automatic(nodes, keyspace, "dropped-");
            assertRestored(nodes, keyspace, kept, before);
            assertTrue(nodes.nodetool(1, "listsnapshots").contains("dropped-"));
        }
    }

    /** The table is gone before anybody could write what was truncated of it. */
    @Test
    void whatWasTruncatedBeforeADropIsKept(Nodes nodes) throws IOException, InterruptedException {
        List<String> before;
        try (CqlSession session = nodes.session(1)) {
            before = fill(session, "both");
            session.execute("TRUNCATE both.rows");
            session.execute("DROP TABLE both.rows");
        }
        nodes.restart(1);
        assertRestored(nodes, "both", automatic(nodes, "both", "truncated-"), before);
    }

    /** Both statements only say what is to be done: how long they take, of few rows and of many, is printed. */
    @Test
    void manyRowsAreKept(Nodes nodes) throws IOException, InterruptedException {
        for (String statement : List.of("TRUNCATE rows", "DROP TABLE rows")) {
            for (int rows : new int[] {FEW, MANY}) {
                String keyspace = (statement.startsWith("DROP") ? "dropped_" : "truncated_") + rows;
                Ledger ledger = fill(nodes, keyspace, rows);
                try (CqlSession session = nodes.session(1, keyspace)) {
                    long began = System.nanoTime();
                    session.execute(statement);
                    long milliseconds = (System.nanoTime() - began) / 1_000_000;
                    System.out.println("SnapshotTest: " + statement + ", of " + rows + " rows: " + milliseconds + " ms");
                }
                Path snapshot = automatic(nodes, keyspace, keyspace.replaceAll("_.*", "-"));
                try (CqlSession session = nodes.session(1, keyspace)) {
                    restore(nodes, session, keyspace, snapshot);
                    ledger.check(Writers.read(session, "rows", ConsistencyLevel.ONE), statement + " of " + rows + " rows");
                }
            }
        }
    }

    private static Ledger fill(Nodes nodes, String keyspace, int rows) throws InterruptedException {
        Ledger ledger = new Ledger();
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + keyspace
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE " + keyspace + ".rows (id int, c int, v text, PRIMARY KEY (id, c)) "
                    + "WITH memtable = 'aiodb'");
        }
        try (CqlSession session = nodes.session(1, keyspace);
                Writers writers = new Writers(session, "rows", ledger)) {
            writers.await(rows);
        }
        return ledger;
    }

    /** A dropped table is made again, and gets its rows, from a snapshot alone. */
    private static void assertRestored(Nodes nodes, String keyspace, Path snapshot, List<String> rows)
            throws IOException {
        try (CqlSession session = nodes.session(1)) {
            restore(nodes, session, keyspace, snapshot);
            assertEquals(rows, rows(session, keyspace));
        }
    }

    private static void restore(Nodes nodes, CqlSession session, String keyspace, Path snapshot) throws IOException {
        for (String statement : Files.readString(snapshot.resolve("schema.cql")).split(";\n")) {
            session.execute(statement);
        }
        assertEquals(0, session.execute("SELECT id FROM " + keyspace + ".rows LIMIT 1").all().size());
        nodes.nodetool(1, "import", "--copy-data", keyspace, "rows", snapshot.toString());
    }

    /** The snapshot of a truncate or drop with the rows of the store: it is written after that, and its manifest last. */
    static Path automatic(Nodes nodes, String keyspace, String prefix) throws IOException, InterruptedException {
        for (int look = 0; look < LOOKS; look++) {
            try (Stream<Path> paths = Files.walk(nodes.directory(1).resolve("data").resolve(keyspace))) {
                Optional<Path> manifest = paths.filter(path -> path.endsWith("manifest.json"))
                        .filter(path -> path.getParent().getFileName().toString().matches(prefix + "[0-9]+-rows-aiodb"))
                        .findFirst();
                if (manifest.isPresent()) {
                    return manifest.get().getParent();
                }
            } catch (UncheckedIOException changed) {
                // A file was renamed or removed while the directory was listed.
            }
            Thread.sleep(LOOK_MS);
        }
        throw new AssertionError("no snapshot has what there was in " + keyspace);
    }

    /** Makes the table, and gives what is in it. */
    private static List<String> fill(CqlSession session, String keyspace) {
        session.execute("CREATE KEYSPACE IF NOT EXISTS " + keyspace
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TYPE IF NOT EXISTS " + keyspace + ".place (street text, number int)");
        String table = keyspace + ".rows";
        session.execute("CREATE TABLE " + table + " (id int, c int, s text static, v text, w text, p place, "
                + "PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
        for (int row = 0; row < ROWS; row++) {
            session.execute("INSERT INTO " + table + " (id, c, s, v, w, p) VALUES (" + row % 10 + ", " + row + ", 's', 'v" + row
                    + "', 'w', {street: 'Main', number: " + row + "})");
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
