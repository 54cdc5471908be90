package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.Statement;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * Two keyspaces on one node that get the same statements and must give the same answers: in one the tables lie in the
 * memtable under test, in the other in one of Cassandra's own.
 */
final class Sides implements AutoCloseable {
    /** The memtables: first Cassandra's, then the one under test. */
    static final List<String> MEMTABLES =
            List.of(System.getProperty("aiodb.memtables", "skiplist,aiodb").split(","));

    /** Where a statement makes a table, this is replaced by a different memtable on each side. */
    private static final String PLACE = "MEMTABLE";

    /** Of a statement, in a message. */
    private static final int MESSAGE_CHARACTERS = 300;

    /**
     * Cassandra marks every 100 ms how far its commit log goes, and after a kill replays it as far as that: it promises no
     * more of the memtables that the log is for. Ten times as long, for a machine with other work.
     */
    private static final int MARKED_MS = 1000;

    private final Nodes nodes;
    private final String name;
    private CqlSession[] sessions;

    /** In microseconds, of statements that name none: it must not differ between the sides. */
    private long timestamp = System.currentTimeMillis() * 1000;

    Sides(Nodes nodes, String name) {
        this.nodes = nodes;
        this.name = name;
        try (CqlSession session = nodes.session(1)) {
            for (int side = 0; side < MEMTABLES.size(); side++) {
                session.execute("DROP KEYSPACE IF EXISTS " + keyspace(side));
                session.execute("CREATE KEYSPACE " + keyspace(side)
                        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            }
        }
        connect();
    }

    String keyspace(int side) {
        return name + "_" + side;
    }

    CqlSession session(int side) {
        return sessions[side];
    }

    /** Runs a statement on both sides. Fails if the answers differ. */
    Answer execute(String statement) {
        return execute(statement, text -> text);
    }

    /** The same, with options such as the size of a page. */
    <T extends Statement<T>> Answer execute(String statement, Function<SimpleStatement, T> options) {
        timestamp++;
        Answer expected = answer(0, statement, options);
        Answer found = answer(1, statement, options);
        assertEquals(
                expected.toString(),
                found.toString(),
                () -> "the answers of " + String.join(" and ", MEMTABLES) + " differ: " + begin(statement));
        return expected;
    }

    /** The same for a statement that must succeed. */
    Answer succeed(String statement) {
        Answer answer = execute(statement);
        assertEquals(null, answer.error(), () -> begin(statement));
        return answer;
    }

    private static String begin(String statement) {
        return statement.substring(0, Math.min(statement.length(), MESSAGE_CHARACTERS));
    }

    /** Runs a statement on one side only. */
    Answer alone(int side, String statement) {
        timestamp++;
        return answer(side, statement, text -> text);
    }

    private <T extends Statement<T>> Answer answer(
            int side, String statement, Function<SimpleStatement, T> options) {
        String text = statement.replace(PLACE, "memtable = '" + MEMTABLES.get(side) + "'");
        return Answer.of(sessions[side], options.apply(SimpleStatement.newInstance(text)).setQueryTimestamp(timestamp))
                .in(keyspace(side));
    }

    /** Writes what is in memory to the disk, on both sides. */
    void flush() {
        eachKeyspace(Management::flush);
    }

    /** Compacts all tables, on both sides. */
    void compact() {
        eachKeyspace(Management::compact);
    }

    private void eachKeyspace(BiConsumer<Management, String> action) {
        try (Management management = nodes.management(1)) {
            for (int side = 0; side < MEMTABLES.size(); side++) {
                action.accept(management, keyspace(side));
            }
        }
    }

    /** Kills the node, once what was written must survive that on both sides, and starts it again. */
    void restart() {
        close();
        try {
            Thread.sleep(MARKED_MS);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
        nodes.restart(1);
        connect();
    }

    /** Moves a table to other memtables. */
    void move(String table, UnaryOperator<String> memtable) {
        for (int side = 0; side < MEMTABLES.size(); side++) {
            sessions[side].execute(
                    "ALTER TABLE " + table + " WITH memtable = '" + memtable.apply(MEMTABLES.get(side)) + "'");
        }
    }

    void connect() {
        sessions = new CqlSession[MEMTABLES.size()];
        for (int side = 0; side < sessions.length; side++) {
            sessions[side] = nodes.session(1, keyspace(side));
        }
    }

    @Override
    public void close() {
        for (CqlSession session : sessions) {
            // A node that did not come back leaves none.
            if (session != null) {
                session.close();
            }
        }
    }
}
