package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.servererrors.ReadFailureException;
import com.datastax.oss.driver.api.core.servererrors.WriteFailureException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Two replicas, one on aiodb and one on a database server that is killed under load: what the second node then logs, what its
 * clients are told, and that hints and repair bring what it has missed.
 */
@Tag("long")
final class ServerOutageTest {
    private static final int NETWORK = 88;
    private static final int AT_AIODB = 1;
    private static final int AT_SERVER = 2;
    private static final String KEYSPACE = "outage";
    private static final int ROWS = 300;

    /** Hints go out every ten seconds, so that some find the server away. */
    private static final long OUTAGE_MS = 1000L * Integer.getInteger("aiodb.outage.seconds", 25);

    /** Some lines of what Cassandra tells of its own, and ours. */
    private static final int MAX_LOG_BYTES = 10_000;

    private static final int MAX_SHOWN = 100;
    private static final int MAX_LOOKS = 1200;
    private static final long LOOK_MS = 50;
    private static final int HINT_ROUNDS = 20;
    private static final long HINT_MS = 15_000;

    @ParameterizedTest
    @MethodSource("io.aiodb.cassandra.ServerStoresTest#kinds")
    void aNodeWhoseServerIsAwayLogsThatOnce(String kind) throws InterruptedException, IOException {
        Ledger hinted = new Ledger();
        Ledger coordinated = new Ledger();
        try (Nodes nodes = nodes(kind);
                CqlSession healthy = nodes.session(AT_AIODB, KEYSPACE);
                CqlSession failing = nodes.session(AT_SERVER, KEYSPACE)) {
            // A table that never had a row is known to have none without its server.
            atAll(healthy, "INSERT INTO tried (id, c, v) VALUES (1, 1, 'first')");
            long[] began = sizes(nodes);
            // Clients of the second node write through it: the other replica acknowledges what its own server refuses.
            try (Writers toOther = new Writers(healthy, "rows", hinted, ConsistencyLevel.ONE);
                    Writers toOwn = new Writers(failing, "own", coordinated, ConsistencyLevel.ONE)) {
                toOther.await(ROWS);
                toOwn.await(ROWS);
                nodes.killServer(AT_SERVER);
                assertFails(healthy);
                assertFails(failing);
                Thread.sleep(OUTAGE_MS);
                nodes.startServer(AT_SERVER);
                awaitLine(nodes, began[AT_SERVER - 1], "is back after");
                toOther.await(ROWS);
                toOwn.await(ROWS);
            }
            checkLogs(nodes, began);
            Members members = new Members(nodes, 2);
            awaitHints(members, hinted);
            nodes.nodetool(AT_AIODB, "repair", "--full", KEYSPACE);
            for (int node : List.of(AT_AIODB, AT_SERVER)) {
                hinted.check(members.alone(node, KEYSPACE), "the outage, on node " + node);
            }
            for (CqlSession session : List.of(healthy, failing)) {
                coordinated.check(Writers.read(session, "own", ConsistencyLevel.ALL), "the outage and a repair");
            }
        }
    }

    /** What all replicas are needed for fails, and Cassandra says how. */
    private static void assertFails(CqlSession session) throws InterruptedException {
        awaitFailure(ReadFailureException.class, session, "SELECT v FROM tried WHERE id = 1 AND c = 1");
        awaitFailure(ReadFailureException.class, session, "SELECT count(*) FROM tried");
        awaitFailure(WriteFailureException.class, session, "INSERT INTO tried (id, c, v) VALUES (1, 1, 'never')");
        assertThrows(DriverException.class, () -> atAll(session, "INSERT INTO tried (id, c, v) VALUES (1, 1, 'n') IF NOT EXISTS"));
    }

    /** Soon after the kill some may time out, which Cassandra says in another way. */
    private static void awaitFailure(Class<? extends DriverException> wanted, CqlSession session, String statement)
            throws InterruptedException {
        DriverException failure = assertThrows(DriverException.class, () -> atAll(session, statement), statement);
        for (int look = 0; !wanted.isInstance(failure); look++) {
            assertTrue(look < MAX_LOOKS, failure.toString());
            Thread.sleep(LOOK_MS);
            failure = assertThrows(DriverException.class, () -> atAll(session, statement), statement);
        }
    }

    private static void atAll(CqlSession session, String statement) {
        session.execute(SimpleStatement.newInstance(statement).setConsistencyLevel(ConsistencyLevel.ALL));
    }

    private static void awaitLine(Nodes nodes, long from, String text) throws InterruptedException, IOException {
        for (int look = 0; said(nodes, AT_SERVER, from).stream().noneMatch(line -> line.contains(text)); look++) {
            assertTrue(look < MAX_LOOKS, "the node does not say: " + text);
            Thread.sleep(LOOK_MS);
        }
    }

    /** One line when the server goes away and one when it is back, nothing of single requests, and nothing much of the other node. */
    private static void checkLogs(Nodes nodes, long[] began) throws IOException {
        for (int node : List.of(AT_AIODB, AT_SERVER)) {
            long bytes = sizes(nodes)[node - 1] - began[node - 1];
            String said = "node " + node + " logged " + bytes + " bytes";
            System.out.println("ServerOutageTest: " + said);
            assertTrue(bytes < MAX_LOG_BYTES, () -> said + ", first:\n" + first(nodes, node, began[node - 1]));
        }
        List<String> lines = said(nodes, AT_SERVER, began[AT_SERVER - 1]);
        List<String> ours = lines.stream().filter(line -> line.contains("ServerOutage")).toList();
        ours.forEach(System.out::println);
        assertEquals(1, ours.stream().filter(line -> line.contains("is away")).count(), ours::toString);
        assertEquals(1, ours.stream().filter(line -> line.contains("is back after")).count(), ours::toString);
        assertEquals(List.of(), lines.stream().filter(line -> line.contains("\tat ")).toList());
    }

    private static String first(Nodes nodes, int node, long from) {
        try {
            return said(nodes, node, from).stream().limit(MAX_SHOWN).collect(Collectors.joining("\n"));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static long[] sizes(Nodes nodes) throws IOException {
        return new long[] {Files.size(log(nodes, AT_AIODB)), Files.size(log(nodes, AT_SERVER))};
    }

    private static Path log(Nodes nodes, int node) {
        return nodes.directory(node).resolve("system.log");
    }

    private static List<String> said(Nodes nodes, int node, long from) throws IOException {
        byte[] all = Files.readAllBytes(log(nodes, node));
        return new String(all, (int) from, all.length - (int) from, StandardCharsets.UTF_8).lines().toList();
    }

    /** Without a repair, by hints alone, the second node has what others coordinated. */
    private static void awaitHints(Members members, Ledger ledger) throws InterruptedException {
        BitSet found = members.alone(AT_SERVER, KEYSPACE);
        for (int round = 0; ledger.missing(found) > 0 && round < HINT_ROUNDS; round++) {
            Thread.sleep(HINT_MS);
            found = members.alone(AT_SERVER, KEYSPACE);
        }
        ledger.check(found, "hints");
    }

    private static Nodes nodes(String kind) throws InterruptedException {
        Nodes nodes = new Nodes(NETWORK, 2);
        nodes.stop(AT_SERVER);
        nodes.map(AT_SERVER, kind);
        nodes.start(AT_SERVER);
        try (CqlSession session = nodes.session(AT_AIODB)) {
            session.execute("CREATE KEYSPACE " + KEYSPACE
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}");
            for (String table : List.of("rows", "own", "tried")) {
                session.execute("CREATE TABLE " + KEYSPACE + "." + table + " (id int, c int, v text, PRIMARY KEY (id, c))"
                        + " WITH memtable = 'aiodb'");
            }
        }
        Members members = new Members(nodes, 2);
        members.awaitSchema();
        for (int node : List.of(AT_AIODB, AT_SERVER)) {
            members.awaitLive(node, 2);
        }
        return nodes;
    }
}
