package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Replicas of one table of which one reads at less cost than the others: from aiodb's cache, while Redis and MySQL are servers
 * that must be asked. Each node reports its cost, and reads go to the cheap one whoever coordinates them; writes go to all.
 * {@code -Daiodb.weight=0} shows what the dynamic snitch does without reports.
 */
@Tag("long")
final class CheapReadsTest {
    private static final int NETWORK = 89;
    private static final String KEYSPACE = "cheap";
    private static final List<String> STORES = List.of("redis", "aiodb", "mysql");
    private static final int CHEAP = STORES.indexOf("aiodb");
    private static final int ROWS = 200;

    /** Of the reads of a round. Now and then the nodes try a dear replica again. */
    private static final double MOST = 0.9;

    private static final int MAX_ROUNDS = 200;
    private static final int MAX_LOOKS = 600;
    private static final long PAUSE_MS = 250;

    /** A difference counts from a tenth on, and all nodes say what a read costs. The second compiler is left out as elsewhere. */
    private static final String THRESHOLD = "dynamic_snitch_badness_threshold: 0.1\n";

    private static final String OPTIONS =
            "-XX:TieredStopAtLevel=1 -Daiodb.read.cost.weight=" + System.getProperty("aiodb.weight", "10");

    private static final String METRIC =
            "org.apache.cassandra.metrics:type=Table,keyspace=" + KEYSPACE + ",scope=rows,name=";

    private static final String SNITCH = "org.apache.cassandra.db:type=DynamicEndpointSnitch";

    @Test
    void readsGoToTheCheapReplicaAndWritesToAll() throws InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, STORES.size(), THRESHOLD, Map.of("JVM_OPTIONS", OPTIONS))) {
            IntStream.rangeClosed(1, STORES.size()).forEach(node -> map(nodes, node));
            create(nodes);
            write(nodes);
            for (ConsistencyLevel consistency : List.of(ConsistencyLevel.ONE, ConsistencyLevel.QUORUM)) {
                for (int coordinator = 1; coordinator <= STORES.size(); coordinator++) {
                    readUntilCheap(nodes, coordinator, consistency);
                }
            }
        }
    }

    private static void map(Nodes nodes, int node) {
        nodes.stop(node);
        if (node - 1 == CHEAP) {
            nodes.map(node, STORES.get(CHEAP), "cache: 64MiB");
        } else {
            nodes.map(node, STORES.get(node - 1));
        }
        nodes.start(node);
    }

    /** Without speculative retries each read asks as many replicas as its level says. */
    private static void create(Nodes nodes) throws InterruptedException {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + KEYSPACE
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
            session.execute("CREATE TABLE " + KEYSPACE + ".rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'"
                    + " AND speculative_retry = 'NONE'");
        }
        Members members = new Members(nodes, STORES.size());
        members.awaitSchema();
        for (int node = 1; node <= STORES.size(); node++) {
            members.awaitLive(node, STORES.size());
        }
    }

    /** Each replica gets each write, though one would do for the client. */
    private static void write(Nodes nodes) throws InterruptedException {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            for (int row = 0; row < ROWS; row++) {
                session.execute(SimpleStatement.newInstance(
                                "INSERT INTO rows (id, v) VALUES (?, ?)", row, "the value of row " + row)
                        .setConsistencyLevel(ConsistencyLevel.ONE));
            }
        }
        long[] wanted = new long[STORES.size()];
        Arrays.fill(wanted, ROWS);
        long[] reached = counts(nodes, "WriteLatency");
        for (int look = 0; look < MAX_LOOKS && !Arrays.equals(wanted, reached); look++) {
            Thread.sleep(PAUSE_MS);
            reached = counts(nodes, "WriteLatency");
        }
        assertArrayEquals(wanted, reached, "writes that reached " + STORES);
    }

    private static void readUntilCheap(Nodes nodes, int coordinator, ConsistencyLevel consistency) throws InterruptedException {
        int replicas = consistency == ConsistencyLevel.ONE ? 1 : STORES.size() / 2 + 1;
        long[] served = new long[STORES.size()];
        try (CqlSession session = nodes.session(coordinator, KEYSPACE)) {
            for (int round = 1; round <= MAX_ROUNDS; round++) {
                served = served(nodes, session, consistency);
                assertEquals(ROWS * replicas, LongStream.of(served).sum(), "replicas that were asked");
                if (served[CHEAP] >= MOST * ROWS) {
                    System.out.println("CheapReadsTest: of " + ROWS + " reads at " + consistency + " by the node with "
                            + STORES.get(coordinator - 1) + " " + STORES + " served " + Arrays.toString(served) + " in round " + round
                            + ", when their severities were " + severities(nodes));
                    return;
                }
                // Reports are told by gossip, once a second.
                Thread.sleep(PAUSE_MS);
            }
        }
        throw new AssertionError("of " + ROWS + " reads at " + consistency + " by node " + coordinator + " " + STORES + " served "
                + Arrays.toString(served) + ", and their severities were " + severities(nodes));
    }

    /** How many reads of a round each node served. */
    private static long[] served(Nodes nodes, CqlSession session, ConsistencyLevel consistency) {
        long[] before = counts(nodes, "ReadLatency");
        for (int row = 0; row < ROWS; row++) {
            String value = session.execute(SimpleStatement.newInstance("SELECT v FROM rows WHERE id = ?", row)
                            .setConsistencyLevel(consistency))
                    .one()
                    .getString(0);
            assertEquals("the value of row " + row, value);
        }
        long[] after = counts(nodes, "ReadLatency");
        return IntStream.range(0, STORES.size())
                .mapToLong(store -> after[store] - before[store])
                .toArray();
    }

    private static long[] counts(Nodes nodes, String name) {
        return IntStream.rangeClosed(1, STORES.size())
                .mapToLong(node -> {
                    try (Management management = nodes.management(node)) {
                        return management.count(METRIC + name);
                    }
                })
                .toArray();
    }

    private static List<Object> severities(Nodes nodes) {
        return IntStream.rangeClosed(1, STORES.size())
                .mapToObj(node -> {
                    try (Management management = nodes.management(node)) {
                        return management.attribute(SNITCH, "Severity");
                    }
                })
                .toList();
    }
}
