package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * Replicas of one table of which one reads at less cost than the others: from aiodb's cache, while Redis and MySQL are servers
 * that must be asked. Each node reports its cost, and reads go to the cheap one whoever coordinates them; writes go to all.
 * {@code -Daiodb.weight=0} shows what the dynamic snitch does without reports.
 */
@Tag("long")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
final class CheapReadsTest {
    private static final int NETWORK = 89;
    private static final String KEYSPACE = "cheap";
    private static final String KILLED = "killed";
    private static final List<String> STORES = List.of("redis", "aiodb", "mysql");
    private static final int CHEAP = STORES.indexOf("aiodb");
    private static final List<Integer> NODES =
            IntStream.rangeClosed(1, STORES.size()).boxed().toList();
    private static final int ROWS = 200;

    /** Of the reads of a round. Now and then the nodes try a dear replica again. */
    private static final double MOST = 0.9;

    private static final int MAX_ROUNDS = 200;
    private static final int MAX_LOOKS = 600;
    private static final long PAUSE_MS = 250;

    /** A difference counts from a tenth on, and all nodes say what a read costs. The second compiler is left out as elsewhere. */
    private static final String THRESHOLD = "dynamic_snitch_badness_threshold: 0.1\n";

    private static final double WEIGHT = Double.parseDouble(System.getProperty("aiodb.weight", "10"));

    private static final String OPTIONS = "-XX:TieredStopAtLevel=1 -Daiodb.read.cost.weight=" + WEIGHT;

    /** In milliseconds: nearly the bound, which a failure counts as. */
    private static final double FAILURE = 9;

    private static final String METRIC =
            "org.apache.cassandra.metrics:type=Table,keyspace=" + KEYSPACE + ",scope=rows,name=";

    private static final String SNITCH = "org.apache.cassandra.db:type=DynamicEndpointSnitch";

    private static Nodes nodes;

    @BeforeAll
    static void start() {
        nodes = new Nodes(NETWORK, STORES.size(), THRESHOLD, Map.of("JVM_OPTIONS", OPTIONS));
        NODES.forEach(CheapReadsTest::map);
    }

    @AfterAll
    static void destroy() {
        nodes.close();
    }

    @Order(1)
    @Test
    void readsGoToTheCheapReplicaAndWritesToAll() throws InterruptedException {
        create(KEYSPACE, "id int PRIMARY KEY, v text");
        write();
        for (ConsistencyLevel consistency : List.of(ConsistencyLevel.ONE, ConsistencyLevel.QUORUM)) {
            for (int coordinator : NODES) {
                readUntilCheap(coordinator, consistency);
            }
        }
    }

    /** Each node is killed with its server, and a server alone: nothing is lost, reads avoid what fails, and reports go on. */
    @Order(2)
    @Test
    void killsLoseNothingAndEndNoReport() throws InterruptedException {
        create(KILLED, "id int, c int, v text, PRIMARY KEY (id, c)");
        Ledger ledger = new Ledger();
        for (int node : NODES) {
            try (CqlSession session = nodes.session(node % STORES.size() + 1, KILLED);
                    Writers writers = new Writers(session, "rows", ledger, ConsistencyLevel.QUORUM)) {
                writers.await(ROWS);
                nodes.kill(node);
                writers.await(ROWS);
                nodes.start(node);
                writers.await(ROWS);
            }
        }
        readPastADeadServer(STORES.indexOf("mysql") + 1);
        for (int node : NODES) {
            try (CqlSession session = nodes.session(node, KILLED)) {
                ledger.check(Writers.read(session, "rows", ConsistencyLevel.QUORUM), "kills, through node " + node);
            }
            await("no report of node " + node, () -> severity(node) > 0);
            List<String> failed = nodes.log(node)
                    .filter(line -> line.contains("at io.aiodb.cassandra.integration.ReadCost"))
                    .toList();
            assertEquals(List.of(), failed, () -> "of node " + node);
        }
    }

    /** The node that has lost its server reports it, and others then read elsewhere. */
    private static void readPastADeadServer(int dead) throws InterruptedException {
        nodes.killServer(dead);
        try (CqlSession session = nodes.session(dead, KILLED)) {
            await(
                    "node " + dead + " looks cheap",
                    () -> !answers(session, ConsistencyLevel.ALL) && severity(dead) > FAILURE * WEIGHT);
            for (int coordinator : NODES) {
                readPast(dead, coordinator);
            }
            nodes.startServer(dead);
            await("the server of node " + dead + " is not back", () -> answers(session, ConsistencyLevel.ALL));
        }
    }

    private static void readPast(int dead, int coordinator) throws InterruptedException {
        try (CqlSession session = nodes.session(coordinator, KILLED)) {
            await(
                    "node " + coordinator + " reads from node " + dead,
                    () -> IntStream.range(0, ROWS).allMatch(read -> answers(session, ConsistencyLevel.QUORUM)));
        }
    }

    private static boolean answers(CqlSession session, ConsistencyLevel consistency) {
        try {
            session.execute(SimpleStatement.newInstance("SELECT v FROM rows WHERE id = 1").setConsistencyLevel(consistency));
            return true;
        } catch (DriverException failed) {
            return false;
        }
    }

    private static void await(String otherwise, BooleanSupplier condition) throws InterruptedException {
        for (int look = 0; !condition.getAsBoolean(); look++) {
            assertTrue(look < MAX_LOOKS, otherwise);
            Thread.sleep(PAUSE_MS);
        }
    }

    private static void map(int node) {
        nodes.stop(node);
        if (node - 1 == CHEAP) {
            nodes.map(node, STORES.get(CHEAP), "cache: 64MiB");
        } else {
            nodes.map(node, STORES.get(node - 1));
        }
        nodes.start(node);
    }

    /** Without speculative retries each read asks as many replicas as its level says. */
    private static void create(String keyspace, String columns) throws InterruptedException {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + keyspace
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
            session.execute("CREATE TABLE " + keyspace + ".rows (" + columns + ") WITH memtable = 'aiodb'"
                    + " AND speculative_retry = 'NONE'");
        }
        Members members = new Members(nodes, STORES.size());
        members.awaitSchema();
        for (int node : NODES) {
            members.awaitLive(node, STORES.size());
        }
    }

    /** Each replica gets each write, though one would do for the client. */
    private static void write() throws InterruptedException {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            for (int row = 0; row < ROWS; row++) {
                session.execute(SimpleStatement.newInstance(
                                "INSERT INTO rows (id, v) VALUES (?, ?)", row, "the value of row " + row)
                        .setConsistencyLevel(ConsistencyLevel.ONE));
            }
        }
        long[] wanted = new long[STORES.size()];
        Arrays.fill(wanted, ROWS);
        long[] reached = counts("WriteLatency");
        for (int look = 0; look < MAX_LOOKS && !Arrays.equals(wanted, reached); look++) {
            Thread.sleep(PAUSE_MS);
            reached = counts("WriteLatency");
        }
        assertArrayEquals(wanted, reached, "writes that reached " + STORES);
    }

    private static void readUntilCheap(int coordinator, ConsistencyLevel consistency) throws InterruptedException {
        int replicas = consistency == ConsistencyLevel.ONE ? 1 : STORES.size() / 2 + 1;
        long[] served = new long[STORES.size()];
        try (CqlSession session = nodes.session(coordinator, KEYSPACE)) {
            for (int round = 1; round <= MAX_ROUNDS; round++) {
                served = served(session, consistency);
                assertEquals(ROWS * replicas, LongStream.of(served).sum(), "replicas that were asked");
                if (served[CHEAP] >= MOST * ROWS) {
                    System.out.println("CheapReadsTest: of " + ROWS + " reads at " + consistency + " by the node with "
                            + STORES.get(coordinator - 1) + " " + STORES + " served " + Arrays.toString(served) + " in round " + round
                            + ", when their severities were " + severities());
                    return;
                }
                // Reports are told by gossip, once a second.
                Thread.sleep(PAUSE_MS);
            }
        }
        throw new AssertionError("of " + ROWS + " reads at " + consistency + " by node " + coordinator + " " + STORES + " served "
                + Arrays.toString(served) + ", and their severities were " + severities());
    }

    /** How many reads of a round each node served. */
    private static long[] served(CqlSession session, ConsistencyLevel consistency) {
        long[] before = counts("ReadLatency");
        for (int row = 0; row < ROWS; row++) {
            String value = session.execute(SimpleStatement.newInstance("SELECT v FROM rows WHERE id = ?", row)
                            .setConsistencyLevel(consistency))
                    .one()
                    .getString(0);
            assertEquals("the value of row " + row, value);
        }
        long[] after = counts("ReadLatency");
        return IntStream.range(0, STORES.size())
                .mapToLong(store -> after[store] - before[store])
                .toArray();
    }

    private static long[] counts(String name) {
        return NODES.stream()
                .mapToLong(node -> {
                    try (Management management = nodes.management(node)) {
                        return management.count(METRIC + name);
                    }
                })
                .toArray();
    }

    private static List<Double> severities() {
        return NODES.stream().map(CheapReadsTest::severity).toList();
    }

    private static double severity(int node) {
        try (Management management = nodes.management(node)) {
            return (Double) management.attribute(SNITCH, "Severity");
        }
    }
}
