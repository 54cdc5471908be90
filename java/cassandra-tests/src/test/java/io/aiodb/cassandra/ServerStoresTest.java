package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.ReadFailureException;
import com.datastax.oss.driver.api.core.servererrors.WriteFailureException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Rows that lie on a database server: real ones, which are killed, come back, or are not what they have to be. {@code
 * -Daiodb.servers=mysql} leaves the other out.
 */
@Tag("long")
final class ServerStoresTest {
    private static final int NETWORK = 90;
    private static final int ROWS = 300;
    private static final int ROUNDS = Integer.getInteger("aiodb.rounds", 3);
    private static final int LOOKS = 1200;
    private static final long LOOK_MS = 50;
    private static final String KEYSPACE = "served";
    private static final String SETTINGS = "cassandra.yaml";

    static List<String> kinds() {
        return List.of(System.getProperty("aiodb.servers", "mysql,redis").split(","));
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void aServerThatIsKilledFailsRequestsUntilItIsBack(String kind) throws InterruptedException {
        Ledger ledger = new Ledger();
        try (Nodes nodes = nodes(kind, 1)) {
            try (CqlSession session = nodes.session(1, KEYSPACE)) {
                session.execute("CREATE TABLE others (id int PRIMARY KEY, v text)");
                session.execute("INSERT INTO others (id, v) VALUES (1, 'kept')");
                checkLongKeys(session, kind);
                for (int round = 0; round < ROUNDS; round++) {
                    try (Writers writers = new Writers(session, "rows", ledger)) {
                        writers.await(ROWS);
                        nodes.killServer(1);
                    }
                    assertFails(session);
                    // The node and its other tables are well.
                    assertEquals(1, session.execute("SELECT v FROM others WHERE id = 1").all().size());
                    nodes.startServer(1);
                    awaitRows(session);
                    ledger.crash();
                    check(session, ledger, "the server was killed");
                }
            }
            nodes.killServer(1);
            // It ends in time although it cannot sync what it has written.
            nodes.stop(1);
            nodes.start(1);
            nodes.restart(1);
            try (CqlSession session = nodes.session(1, KEYSPACE)) {
                check(session, ledger, "the node was stopped without its server, and both were killed");
                session.execute("TRUNCATE rows");
                assertEquals(0, session.execute("SELECT * FROM rows").all().size());
                session.execute("DROP TABLE rows");
            }
        }
        System.out.println("ServerStoresTest: " + ledger.count() + " acknowledged rows are there after " + ROUNDS + " kills of "
                + kind);
    }

    private static void checkLongKeys(CqlSession session, String kind) {
        session.execute("CREATE TABLE texts (id text PRIMARY KEY) WITH memtable = 'aiodb'");
        session.execute("INSERT INTO texts (id) VALUES ('" + "k".repeat(3000) + "')");
        String longer = "INSERT INTO texts (id) VALUES ('" + "k".repeat(4000) + "')";
        if (kind.equals("mysql")) {
            InvalidQueryException refused = assertThrows(InvalidQueryException.class, () -> session.execute(longer));
            assertTrue(refused.getMessage().contains("take at most 3072"), refused.getMessage());
        } else {
            session.execute(longer);
        }
    }

    /** Nothing is answered as if there were no rows; changes of the schema are refused before they are half done. */
    private static void assertFails(CqlSession session) throws InterruptedException {
        awaitFailure(ReadFailureException.class, session, "SELECT v FROM rows WHERE id = -1 AND c = 1");
        awaitFailure(WriteFailureException.class, session, "INSERT INTO rows (id, c, v) VALUES (-1, 1, 'never')");
        List<String> reads = List.of(
                "SELECT v FROM rows WHERE id = 0 AND c = 0",
                "SELECT v FROM rows WHERE id = -1",
                "SELECT * FROM rows",
                "SELECT count(*) FROM rows");
        for (String read : reads) {
            assertThrows(ReadFailureException.class, () -> session.execute(read), read);
        }
        List<String> changes = List.of(
                "DELETE FROM rows WHERE id = 0",
                "UPDATE rows SET v = 'never' WHERE id = 0 AND c = 0 IF EXISTS",
                "TRUNCATE rows",
                "DROP TABLE rows",
                "ALTER TABLE rows WITH memtable = 'skiplist'",
                "CREATE TABLE more (id int PRIMARY KEY) WITH memtable = 'aiodb'");
        for (String change : changes) {
            assertThrows(DriverException.class, () -> session.execute(change), change);
        }
    }

    /** Soon after the kill some may time out, which Cassandra says in another way. */
    private static void awaitFailure(Class<? extends DriverException> wanted, CqlSession session, String statement)
            throws InterruptedException {
        DriverException failure = assertThrows(DriverException.class, () -> session.execute(statement), statement);
        for (int look = 0; !wanted.isInstance(failure); look++) {
            assertTrue(look < LOOKS, failure.toString());
            Thread.sleep(LOOK_MS);
            failure = assertThrows(DriverException.class, () -> session.execute(statement), statement);
        }
    }

    private static void awaitRows(CqlSession session) throws InterruptedException {
        for (int look = 0; ; look++) {
            try {
                session.execute("SELECT v FROM rows WHERE id = 0 AND c = 0");
                return;
            } catch (DriverException notYet) {
                assertTrue(look < LOOKS, notYet.toString());
                Thread.sleep(LOOK_MS);
            }
        }
    }

    private static void check(CqlSession session, Ledger ledger, String when) {
        ledger.check(Writers.read(session, "rows", ConsistencyLevel.ONE), when);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void aNodeDoesNotStartOnAServerThatIsNotAsItHasToBe(String kind) throws IOException {
        try (Nodes nodes = nodes(kind, 2)) {
            write(nodes, 1);
            write(nodes, 2);
            nodes.stop(2);
            Path wrong = nodes.directory(2).resolve("wrong");
            Files.writeString(wrong, "wrong\n");
            assertRefused(
                    nodes, yaml -> yaml.replaceAll("password_file: .*", "password_file: " + wrong), "`password_file`");
            assertRefused(nodes, yaml -> yaml.replaceAll("port: [0-9]+", "port: 1"), "cannot be reached");
            String weaker = kind.equals("mysql") ? "innodb_flush_log_at_trx_commit" : "appendfsync";
            assertRefused(nodes, yaml -> yaml.replace("durability: interval", "durability: sync"), weaker);
            if (kind.equals("mysql")) {
                String larger = "commitlog_segment_size: 256MiB\nmax_mutation_size: 80MiB\n";
                assertRefused(nodes, yaml -> yaml + larger, "max_allowed_packet");
            }
            // The server of the other node, by its name for the store there, and by a copy of its directory.
            String other = Files.readString(nodes.directory(1).resolve(SETTINGS)).lines()
                    .dropWhile(line -> !line.contains("store: " + kind))
                    .limit(4)
                    .collect(Collectors.joining("\n"));
            String id = identity(nodes, 1, kind, "id");
            String parameter = kind.equals("mysql") ? "database" : "name";
            String name = kind.equals("mysql") ? "aiodb_" + id.replace('-', '_') : id;
            Path stores = nodes.directory(2).resolve("data/aiodb-stores");
            Path kept = nodes.directory(2).resolve("kept");
            Files.move(stores, kept);
            String named = other + "\n        " + parameter + ": " + name;
            assertRefused(nodes, yaml -> at(yaml, kind, named), "another `" + parameter + "`");
            delete(stores);
            copy(nodes.directory(1).resolve("data/aiodb-stores/" + kind), stores.resolve(kind));
            String owner = identity(nodes, 1, kind, "owner");
            assertRefused(nodes, yaml -> at(yaml, kind, other), "belongs to " + owner);
            // Neither has disturbed the node whose server it is.
            write(nodes, 1);
            delete(stores);
            Files.move(kept, stores);
            nodes.start(2);
            write(nodes, 2);
        }
    }

    /** The node that coordinates a change refuses it where its server is down; one that learns of it does it later. */
    @ParameterizedTest
    @MethodSource("kinds")
    void aNodeWhoseServerIsDownLearnsOfTablesLater(String kind) throws InterruptedException {
        try (Nodes nodes = nodes(kind, 2)) {
            nodes.killServer(2);
            try (CqlSession session = nodes.session(1, KEYSPACE)) {
                session.execute("CREATE TABLE later (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
                session.execute("DROP TABLE rows");
                session.execute("INSERT INTO later (id, v) VALUES (1, 'there')");
                nodes.startServer(2);
                new Members(nodes, 2).awaitSchema();
                SimpleStatement all = SimpleStatement.newInstance("SELECT v FROM later WHERE id = 1");
                assertEquals(1, session.execute(all.setConsistencyLevel(ConsistencyLevel.ALL)).all().size());
            }
            try (CqlSession session = nodes.session(2, KEYSPACE)) {
                assertThrows(DriverException.class, () -> session.execute("SELECT * FROM rows"));
                session.execute("INSERT INTO later (id, v) VALUES (2, 'too')");
                assertEquals(2, session.execute("SELECT * FROM later").all().size());
            }
        }
    }

    /** Writes rows through a node, and reads them. */
    private static void write(Nodes nodes, int node) {
        try (CqlSession session = nodes.session(node, KEYSPACE)) {
            for (int row = 0; row < ROWS; row++) {
                session.execute("INSERT INTO rows (id, c, v) VALUES (" + row + ", " + node + ", 'v')");
            }
            for (int row = 0; row < ROWS; row++) {
                String select = "SELECT v FROM rows WHERE id = " + row + " AND c = " + node;
                assertEquals(1, session.execute(select).all().size(), select);
            }
        }
    }

    /** Settings whose memtable is what these lines say. */
    private static String at(String yaml, String kind, String lines) {
        int from = yaml.indexOf("        store: " + kind);
        int to = yaml.indexOf("password_file", from);
        return yaml.substring(0, from) + lines + yaml.substring(yaml.indexOf('\n', to));
    }

    private static String identity(Nodes nodes, int node, String kind, String name) throws IOException {
        Path file = nodes.directory(node).resolve("data/aiodb-stores/" + kind + "/STORE");
        return Files.readAllLines(file).stream()
                .filter(line -> line.startsWith(name + "="))
                .findFirst()
                .orElseThrow()
                .substring(name.length() + 1);
    }

    /** The second node does not start where its settings are changed, and says why. They are put back. */
    private static void assertRefused(Nodes nodes, UnaryOperator<String> change, String reason) throws IOException {
        Path changed = nodes.directory(2).resolve(SETTINGS);
        String before = Files.readString(changed);
        String after = change.apply(before);
        assertNotEquals(before, after);
        Files.writeString(changed, after);
        String why = nodes.whyNotStarted(2, Map.of());
        Files.writeString(changed, before);
        assertNotNull(why, () -> "the node started, and should have said " + reason);
        assertTrue(why.contains(reason), why);
    }

    private static void copy(Path from, Path to) throws IOException {
        Files.createDirectories(to);
        try (Stream<Path> files = Files.list(from)) {
            for (Path file : files.toList()) {
                Files.copy(file, to.resolve(file.getFileName()));
            }
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /** Nodes with a server each, and a table there. */
    private static Nodes nodes(String kind, int count) {
        Nodes nodes = new Nodes(NETWORK, count);
        for (int node = 1; node <= count; node++) {
            nodes.stop(node);
            nodes.map(node, kind);
            nodes.start(node);
        }
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy',"
                    + " 'replication_factor': " + count + "}");
            session.execute("CREATE TABLE " + KEYSPACE + ".rows (id int, c int, v text, PRIMARY KEY (id, c))"
                    + " WITH memtable = 'aiodb'");
            if (count > 1) {
                new Members(nodes, count).awaitSchema();
            }
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
        return nodes;
    }
}
