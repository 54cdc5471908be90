package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The disk of a store fills up: writes are refused, reads and other tables go on, and so do writes once there is space. Tables go
 * from a full store, and a node starts that has one.
 */
@Tag("long")
final class FullDiskTest {
    private static final int NETWORK = 96;
    private static final int ROW_BYTES = 1_000_000;

    /** Of updates that are kept as a whole before they are written: far more than comes and goes of the room on a full disk. */
    private static final int MOST_LARGE_BYTES = 12_000_000;

    private static final int LEAST_LARGE_BYTES = 4_000_000;

    private static final int LARGE_ROWS = 20;

    /** Of an index, with as many rows each. */
    private static final int PARTS = 10;

    /** More than the small disk takes. */
    private static final int MANY = 400;

    /** Of tables of usual rows. */
    private static final int ROWS = 300;

    private static final int USUAL_BYTES = 500;

    /** So many refusals in a row, each after a while, are a full disk, and not a writer that is faster than reclaim. */
    private static final int REFUSALS = 10;

    private static final int REFUSAL_MS = 1500;

    /** Usual rows for which the rest of a disk has room that has taken as many large ones as it takes. */
    private static final int MANY_USUAL = 200_000;

    /** Many in flight: one after the other the usual rows would take minutes. */
    private static final int IN_FLIGHT = 100;

    private static final int TRIES = 60;
    private static final int TRY_MS = 1000;

    private interface Run {
        void on(Path disk, Nodes nodes) throws IOException, InterruptedException;
    }

    private static void onSmallDisk(Run run) throws IOException, InterruptedException {
        Path disk = Files.createTempDirectory("aiodb-full-disk");
        Assumptions.assumeTrue(mount("-t", "tmpfs", "-o", "size=300m", "tmpfs", disk.toString()), "only root may mount");
        String directory = "directory: " + disk.resolve("store");
        try (Nodes nodes = new Nodes(NETWORK, 1, "", Map.of("PARAMETERS", directory))) {
            run.on(disk, nodes);
        } finally {
            end("umount", "--lazy", disk.toString());
            Files.delete(disk);
        }
    }

    @Test
    void writesAreRefusedUntilThereIsSpace() throws IOException, InterruptedException {
        onSmallDisk((disk, nodes) -> {
            Set<Integer> acknowledged = new TreeSet<>();
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE filled WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE filled.rows (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'");
                session.execute("CREATE TABLE filled.others (id int PRIMARY KEY, v blob)");
                PreparedStatement insert = session.prepare("INSERT INTO filled.rows (id, v) VALUES (?, ?)");
                DriverException refused = fill(session, insert, acknowledged);
                assertNotNull(refused, "a disk of 300 MB took " + MANY + " MB");
                assertTrue(acknowledged.size() > 50, acknowledged + " and then " + refused);
                // Not all at once: the store ends long scans when it needs the space that they hold.
                assertRows(session, acknowledged);
                session.execute("INSERT INTO filled.others (id, v) VALUES (1, 0x00)");
                assertTrue(mount("-o", "remount,size=600m", disk.toString()));
                writeAgain(session, insert, acknowledged);
                assertRows(session, acknowledged);
            }
            nodes.restart(1);
            try (CqlSession session = nodes.session(1)) {
                assertRows(session, acknowledged);
            }
        });
    }

    /** Each way in which a table leaves a store, and the next start of the node, which goes through all that is left. */
    @Test
    void tablesGoFromAFullStore() throws IOException, InterruptedException {
        onSmallDisk((disk, nodes) -> {
            Set<Integer> acknowledged = new TreeSet<>();
            UUID dropped;
            try (CqlSession session = nodes.session(1)) {
                for (String keyspace : List.of("truncated", "dropped", "altered")) {
                    makeTable(session, keyspace);
                    writeUsual(session, keyspace);
                }
                dropped = id(session, "dropped", "rows");
                makeTable(session, "filled");
                makeUsual(session);
                fill(session, insert(session, "filled"), acknowledged);
                fillWithUsual(session);
                assertThrows(
                        DriverException.class,
                        () -> session.execute(insert(session, "truncated").bind(ROWS, ByteBuffer.allocate(USUAL_BYTES))));
                session.execute("TRUNCATE truncated.rows");
                assertEquals(0, count(session, "truncated"));
                session.execute("DROP TABLE dropped.rows");
                session.execute("ALTER TABLE altered.rows WITH memtable = 'trie'");
                assertEquals(ROWS, count(session, "altered"));
                // The snapshots have what there was, though the store has no room to remember that they are due.
                assertSnapshot(nodes, "truncated", "truncated-");
                assertSnapshot(nodes, "dropped", "dropped-");
                session.execute("TRUNCATE truncated.rows");
            }
            nodes.restart(1);
            try (CqlSession session = nodes.session(1)) {
                assertEquals(0, count(session, "truncated"));
                assertEquals(ROWS, count(session, "altered"));
                session.execute("CREATE TABLE dropped.rows (id int PRIMARY KEY, v blob) WITH id = " + dropped + " AND memtable = 'aiodb'");
                assertEquals(0, count(session, "dropped"));
                assertRows(session, acknowledged);
                // Room for writes comes back with the largest table.
                session.execute("TRUNCATE filled.rows");
                writeAgain(session, insert(session, "filled"), new TreeSet<>());
            }
        });
    }

    /** It is completed when there is room. */
    @Test
    void aNodeStartsWithAFullStoreThatHasAnUpdateInPart() throws IOException, InterruptedException {
        onSmallDisk((disk, nodes) -> {
            String updated;
            Set<Integer> refused;
            try (CqlSession session = nodes.session(1)) {
                makeTable(session, "filled");
                makeUsual(session);
                session.execute("CREATE TABLE filled.updated (id int, c int, v blob, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
                session.execute("INSERT INTO filled.updated (id, c, v) VALUES (-1, 0, 0x00)");
                updated = id(session, "filled", "updated").toString();
                fill(session, insert(session, "filled"), new TreeSet<>());
                fillWithUsual(session);
                assertTrue(mount("-o", "remount,size=316m", disk.toString()));
                refused = leaveInPart(session);
            }
            nodes.restart(1);
            assertLogged(nodes, "Updates of the table " + updated + " stay there in part");
            try (CqlSession session = nodes.session(1)) {
                assertEquals(1, session.execute("SELECT c FROM filled.updated WHERE id = -1").all().size());
                assertTrue(mount("-o", "remount,size=600m", disk.toString()));
                awaitWhole(session, refused);
            }
        });
    }

    /** The rows of a table find no room where their SSTables are to lie. They stay in the store, and an index is made meanwhile. */
    @Test
    void rowsOfAFlushThatFailedAreInAnIndexThatIsMadeBeforeTheNextOne() throws IOException, InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, 1, "disk_failure_policy: ignore\n")) {
            Path files;
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE indexed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE indexed.rows (id int PRIMARY KEY, part int) WITH memtable = 'aiodb'");
                for (int row = 0; row < ROWS; row++) {
                    session.execute("INSERT INTO indexed.rows (id, part) VALUES (" + row + ", " + row % PARTS + ")");
                }
                String id = id(session, "indexed", "rows").toString().replace("-", "");
                files = nodes.directory(1).resolve("data/indexed/rows-" + id);
                Assumptions.assumeTrue(mount("-t", "tmpfs", "-o", "size=4k", "tmpfs", files.toString()), "only root may mount");
                try {
                    session.execute("ALTER TABLE indexed.rows WITH memtable = 'trie'");
                    // A change of the schema waits for the flushes before it.
                    session.execute("CREATE TABLE indexed.others (id int PRIMARY KEY)");
                } finally {
                    end("umount", "--lazy", files.toString());
                }
                assertEquals(ROWS, count(session, "indexed"));
                session.execute("CREATE INDEX ON indexed.rows (part)");
            }
            nodes.restart(1);
            assertLogged(nodes, "Moving the rows of indexed.rows");
            try (CqlSession session = nodes.session(1)) {
                for (int part = 0; part < PARTS; part++) {
                    String select = "SELECT id FROM indexed.rows WHERE part = " + part;
                    assertEquals(ROWS / PARTS, session.execute(select).all().size(), select);
                }
            }
        }
    }

    private static void makeTable(CqlSession session, String keyspace) {
        session.execute("CREATE KEYSPACE " + keyspace
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE " + keyspace + ".rows (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'");
    }

    private static PreparedStatement insert(CqlSession session, String keyspace) {
        return session.prepare("INSERT INTO " + keyspace + ".rows (id, v) VALUES (?, ?)");
    }

    private static void writeUsual(CqlSession session, String keyspace) {
        PreparedStatement insert = insert(session, keyspace);
        for (int row = 0; row < ROWS; row++) {
            session.execute(insert.bind(row, ByteBuffer.allocate(USUAL_BYTES)));
        }
    }

    private static UUID id(CqlSession session, String keyspace, String table) {
        return session.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = '" + keyspace + "' AND table_name = '"
                        + table + "'")
                .one()
                .getUuid(0);
    }

    private static int count(CqlSession session, String keyspace) {
        return session.execute("SELECT id FROM " + keyspace + ".rows").all().size();
    }

    /**
     * Writes shorter and shorter updates that are kept as a whole before they are written, to a disk that has room for one of the first
     * of them once, and not twice.
     *
     * @return those that were refused
     */
    private static Set<Integer> leaveInPart(CqlSession session) {
        PreparedStatement insert = session.prepare("INSERT INTO filled.updated (id, c, v) VALUES (?, ?, ?)");
        Set<Integer> refused = new TreeSet<>();
        for (int bytes = MOST_LARGE_BYTES; bytes > LEAST_LARGE_BYTES; bytes -= bytes / 5) {
            BatchStatementBuilder update = BatchStatement.builder(BatchType.UNLOGGED);
            for (int row = 0; row < LARGE_ROWS; row++) {
                update.addStatement(insert.bind(bytes, row, ByteBuffer.allocate(bytes / LARGE_ROWS)));
            }
            try {
                session.execute(update.build());
            } catch (DriverException full) {
                refused.add(bytes);
            }
        }
        return refused;
    }

    /** Waits until one of the updates that were refused is there as a whole. Each of the others that is there at all gets whole, too. */
    private static void awaitWhole(CqlSession session, Set<Integer> refused) throws InterruptedException {
        Map<Integer, Integer> rows = new TreeMap<>();
        for (int attempt = 0; attempt < TRIES; attempt++) {
            rows.clear();
            for (int update : refused) {
                rows.put(update, session.execute("SELECT c FROM filled.updated WHERE id = " + update).all().size());
            }
            if (rows.containsValue(LARGE_ROWS) && rows.values().stream().allMatch(each -> each == 0 || each == LARGE_ROWS)) {
                return;
            }
            Thread.sleep(TRY_MS);
        }
        throw new AssertionError("rows of updates that a full store had in part, each of " + LARGE_ROWS + ": " + rows);
    }

    /** A table for usual rows, in the store before there is no room to make it. */
    private static void makeUsual(CqlSession session) {
        session.execute("CREATE TABLE filled.usual (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'");
        session.execute("INSERT INTO filled.usual (id, v) VALUES (-1, 0x00)");
    }

    /** Writes usual rows until the store refuses these, too. */
    private static void fillWithUsual(CqlSession session) throws InterruptedException {
        PreparedStatement insert = session.prepare("INSERT INTO filled.usual (id, v) VALUES (?, ?)");
        int refused = 0;
        int row = 0;
        while (row < MANY_USUAL && refused < REFUSALS) {
            List<CompletionStage<?>> writes = new ArrayList<>();
            int last = row + (refused == 0 ? IN_FLIGHT : 1);
            while (row < last) {
                writes.add(session.executeAsync(insert.bind(row, ByteBuffer.allocate(USUAL_BYTES))));
                row++;
            }
            boolean allRefused = true;
            for (CompletionStage<?> write : writes) {
                allRefused &= write.handle((result, failure) -> failure != null).toCompletableFuture().join();
            }
            refused = allRefused ? refused + 1 : 0;
            if (allRefused) {
                Thread.sleep(REFUSAL_MS);
            }
        }
        assertEquals(REFUSALS, refused, "the disk took " + MANY_USUAL + " rows of " + USUAL_BYTES + " bytes more");
    }

    private static void assertSnapshot(Nodes nodes, String keyspace, String prefix) throws IOException, InterruptedException {
        Path snapshot = SnapshotTest.automatic(nodes, keyspace, prefix);
        try (Stream<Path> files = Files.list(snapshot)) {
            assertTrue(files.anyMatch(file -> file.toString().endsWith("-Data.db")), "nothing in " + snapshot);
        }
    }

    private static void assertLogged(Nodes nodes, String text) {
        assertTrue(nodes.log(1).anyMatch(line -> line.contains(text)), "the node has not logged: " + text);
    }

    /** Writes until a write is refused, and says how. */
    private static DriverException fill(CqlSession session, PreparedStatement insert, Set<Integer> acknowledged) {
        for (int row = 0; row < MANY; row++) {
            try {
                session.execute(insert.bind(row, ByteBuffer.allocate(ROW_BYTES)));
                acknowledged.add(row);
            } catch (DriverException refused) {
                return refused;
            }
        }
        return null;
    }

    private static void writeAgain(CqlSession session, PreparedStatement insert, Set<Integer> acknowledged)
            throws InterruptedException {
        DriverException refused = null;
        for (int attempt = 0; attempt < TRIES; attempt++) {
            try {
                session.execute(insert.bind(MANY, ByteBuffer.allocate(ROW_BYTES)));
                acknowledged.add(MANY);
                return;
            } catch (DriverException still) {
                refused = still;
                Thread.sleep(TRY_MS);
            }
        }
        throw new AssertionError("writes are still refused, though there is space", refused);
    }

    /** All that were acknowledged are there; one that was refused may be. */
    private static void assertRows(CqlSession session, Set<Integer> acknowledged) {
        Set<Integer> found = new TreeSet<>();
        for (Row row : session.execute("SELECT id FROM filled.rows")) {
            found.add(row.getInt("id"));
        }
        assertTrue(found.containsAll(acknowledged), found + " where there should be " + acknowledged);
        assertTrue(found.size() <= acknowledged.size() + 1, found + " where there should be " + acknowledged);
        for (int row : acknowledged) {
            Row read = session.execute("SELECT v FROM filled.rows WHERE id = " + row).one();
            assertEquals(ROW_BYTES, read.getByteBuffer("v").remaining());
        }
    }

    private static boolean mount(String... arguments) throws IOException, InterruptedException {
        String[] command = new String[arguments.length + 1];
        command[0] = "mount";
        System.arraycopy(arguments, 0, command, 1, arguments.length);
        return end(command) == 0;
    }

    private static int end(String... command) throws IOException, InterruptedException {
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }
}
