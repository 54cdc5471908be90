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
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/** Three real nodes with three replicas of a table, and what Cassandra does with replicas. */
@Tag("slow")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
final class ClusterTest {
    private static final int NETWORK = 92;
    private static final String KEYSPACE = "replicated";
    private static final int ROWS = 500;
    private static final int HINT_TRIES = 30;

    private static Nodes nodes;

    /** All rows that were acknowledged, by at least two of three replicas. */
    private static final Ledger LEDGER = new Ledger();

    @BeforeAll
    static void create() {
        nodes = new Nodes(NETWORK, 3);
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + KEYSPACE
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
            session.execute("CREATE TABLE " + KEYSPACE + ".rows (id int, c int, v text, PRIMARY KEY (id, c)) "
                    + "WITH memtable = '" + Sides.MEMTABLES.get(1) + "'");
        }
    }

    @AfterAll
    static void destroy() {
        nodes.close();
    }

    @Order(1)
    @Test
    void quorumWithOneNodeDownAndHints() throws InterruptedException {
        write(1);
        nodes.kill(3);
        write(2);
        // Cassandra asks no other replica when one that it believes alive does not answer a read of many partitions.
        new Members(nodes, 3).awaitLive(1, 2);
        assertRows(ConsistencyLevel.QUORUM, 1);
        nodes.start(3);
        // Hints are written every ten seconds, and delivered after that.
        for (int tries = 0; missing() > 0; tries++) {
            assertTrue(tries < HINT_TRIES, "hints were not delivered to node 3");
            Thread.sleep(10_000);
        }
    }

    @Order(2)
    @Test
    void readRepair() throws InterruptedException {
        missOnNode3();
        assertRows(ConsistencyLevel.ALL, 1);
        assertEquals(0, missing(), "rows that node 3 lacks after read repair");
    }

    @Order(3)
    @Test
    void fullRepair() throws InterruptedException {
        missOnNode3();
        nodes.nodetool(3, "repair", "--full", KEYSPACE);
        assertEquals(0, missing(), "rows that node 3 lacks after full repair");
        assertNothingLeft(List.of(1, 2, 3));
        assertValidatedInStore(3);
    }

    @Order(4)
    @Test
    void incrementalRepair() throws InterruptedException {
        missOnNode3();
        nodes.nodetool(3, "repair", KEYSPACE);
        assertEquals(0, missing(), "rows that node 3 lacks after incremental repair");
        assertNothingLeft(List.of(1, 2, 3));
    }

    @Order(5)
    @Test
    void bootstrapUnderLoad() throws InterruptedException {
        underLoad(1, nodes::add);
        assertRows(ConsistencyLevel.ALL, 4);
        assertNothingLeft(List.of(1, 2, 3, 4));
    }

    /** The fourth node holds some of what the first three did. It goes from them by this command only. */
    @Order(6)
    @Test
    void cleanup() {
        long before = snapshotBytes(1, "before");
        nodes.nodetool(1, "cleanup", KEYSPACE);
        long after = snapshotBytes(1, "after");
        assertTrue(after < before, "there were " + before + " bytes on node 1 before its cleanup, and then " + after);
        assertRows(ConsistencyLevel.ALL, 4);
    }

    @Order(7)
    @Test
    void decommissionUnderLoad() throws InterruptedException {
        underLoad(1, () -> nodes.remove(2));
        assertRows(ConsistencyLevel.ALL, 1);
        assertNothingLeft(List.of(1, 3, 4));
    }

    @Order(8)
    @Test
    void replacementUnderLoad() throws InterruptedException {
        underLoad(1, () -> {
            nodes.kill(3);
            nodes.replace(3);
        });
        nodes.nodetool(5, "repair", "--full", KEYSPACE);
        assertRows(ConsistencyLevel.ALL, 5);
        assertNothingLeft(List.of(1, 4, 5));
    }

    private static void write(int node) throws InterruptedException {
        try (CqlSession session = nodes.session(node, KEYSPACE);
                Writers writers = new Writers(session, "rows", LEDGER, ConsistencyLevel.QUORUM)) {
            writers.await(ROWS);
        }
    }

    private static void underLoad(int node, Runnable change) throws InterruptedException {
        try (CqlSession session = nodes.session(node, KEYSPACE);
                Writers writers = new Writers(session, "rows", LEDGER, ConsistencyLevel.QUORUM)) {
            change.run();
            writers.await(1);
        }
    }

    /** Writes rows that node 3 does not get, and no hints of them. */
    private static void missOnNode3() throws InterruptedException {
        nodes.kill(3);
        handOff(false);
        // Until then Cassandra keeps what it would send, for as long as a write may take.
        new Members(nodes, 3).awaitLive(1, 2);
        write(1);
        nodes.start(3);
        handOff(true);
        assertTrue(missing() > 0, "node 3 has rows that were written while it was down");
    }

    /** How many of the acknowledged rows node 3 lacks. */
    private static int missing() throws InterruptedException {
        return LEDGER.missing(new Members(nodes, 3).alone(3, KEYSPACE));
    }

    private static void handOff(boolean enabled) {
        for (int node : new int[] {1, 2}) {
            nodes.nodetool(node, enabled ? "enablehandoff" : "disablehandoff");
        }
    }

    private static void assertRows(ConsistencyLevel consistency, int node) {
        try (CqlSession session = nodes.session(node, KEYSPACE)) {
            LEDGER.check(Writers.read(session, "rows", consistency), "a read of " + consistency + " from node " + node);
        }
    }

    /** How many bytes of rows a node has, as SSTables, which are in a snapshot of them. */
    private static long snapshotBytes(int node, String name) {
        nodes.nodetool(node, "snapshot", "--tag", name, KEYSPACE);
        return files(nodes.directory(node).resolve("data").resolve(KEYSPACE), "-Data.db").stream()
                .filter(path -> path.getParent().endsWith(name))
                .mapToLong(path -> path.toFile().length())
                .sum();
    }

    /** Rows that a validation compares are read where they are, and not written to SSTables first. */
    private static void assertValidatedInStore(int node) {
        if (!Sides.MEMTABLES.get(1).equals("aiodb")) {
            return;
        }
        List<String> validated = nodes.log(node)
                .filter(line -> line.contains("[ValidationExecutor") && line.contains("Memtable ranges"))
                .toList();
        assertFalse(validated.isEmpty(), "node " + node + " logs no validation");
        validated.forEach(line -> assertTrue(line.endsWith(" in the store"), line));
    }

    /** A store's tables have no SSTables: what repair and streaming make of them must be gone. */
    private static void assertNothingLeft(List<Integer> members) {
        if (!Sides.MEMTABLES.get(1).equals("aiodb")) {
            return;
        }
        for (int node : members) {
            Path data = nodes.directory(node).resolve("data").resolve(KEYSPACE);
            List<Path> found = files(data, "-Data.db").stream()
                    .filter(path -> !path.toString().contains("/snapshots/"))
                    .toList();
            assertEquals(List.of(), found, "SSTables of node " + node);
        }
    }

    static List<Path> files(Path directory, String end) {
        try (Stream<Path> paths = Files.walk(directory)) {
            return paths.filter(path -> path.toString().endsWith(end)).toList();
        } catch (IOException | UncheckedIOException failure) {
            throw new AssertionError(directory + " cannot be listed", failure);
        }
    }
}
