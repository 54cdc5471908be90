package io.aiodb.cassandra;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A node is killed under load, and started again: what was acknowledged is there. */
@ExtendWith(SharedNode.class)
final class KillTest {
    private static final String KEYSPACE = "killed";
    private static final int ROUNDS = Integer.getInteger("aiodb.rounds", 3);
    private static final int ROWS = 1500;

    private static final int DROPS = 3;

    /** The longest time, in milliseconds, from the beginning of a change to the kill. */
    private static final int LONGEST_MS = 400;

    @Test
    void acknowledgedRowsSurvive(Nodes nodes) throws InterruptedException {
        Ledger ledger = new Ledger();
        create(nodes, "survives");
        for (int round = 1; round <= ROUNDS; round++) {
            try (CqlSession session = nodes.session(1, KEYSPACE);
                    Writers writers = new Writers(session, "survives", ledger)) {
                writers.await(ROWS);
                nodes.kill(1);
            }
            nodes.start(1);
            ledger.crash();
            check(nodes, "survives", ledger, "kill " + round);
        }
        System.out.println("KillTest: " + ledger.count() + " acknowledged rows are there after " + ROUNDS + " kills");
    }

    /** The change of a round, under load, while the node may be killed. */
    private enum Change {
        TRUNCATE,
        DROP,
        ALTER
    }

    @Test
    void changesSurvive(Nodes nodes) throws InterruptedException {
        long seed = Long.getLong("aiodb.seed", new Random().nextLong());
        Random random = new Random(seed);
        Ledger ledger = new Ledger();
        create(nodes, "changes");
        int round = 0;
        try {
            for (; round < ROUNDS * Change.values().length; round++) {
                Change change = Change.values()[round % Change.values().length];
                changeAndKill(nodes, ledger, change, random);
                nodes.start(1);
                ledger.crash();
                check(nodes, "changes", ledger, "a kill during " + change);
            }
        } catch (AssertionError | RuntimeException failure) {
            throw new AssertionError("round " + round + "; try again with -Daiodb.seed=" + seed, failure);
        }
        System.out.println("KillTest: " + ledger.count() + " rows acknowledged, " + round + " kills during changes");
    }

    private static void changeAndKill(Nodes nodes, Ledger ledger, Change change, Random random)
            throws InterruptedException {
        try (CqlSession session = nodes.session(1, KEYSPACE);
                CqlSession changing = nodes.session(1, KEYSPACE);
                Writers writers = new Writers(session, "changes", ledger)) {
            writers.await(ROWS / 5);
            Thread changer = new Thread(() -> change(changing, ledger, change), "changer");
            changer.start();
            if (change == Change.DROP) {
                // A node that is killed in the midst of it may find a table without columns in its schema, with any
                // memtable, and not start: Cassandra writes the tables of its schema one after the other.
                changer.join();
            }
            Thread.sleep(random.nextInt(LONGEST_MS));
            nodes.kill(1);
            changer.join();
        }
    }

    /** Repeats a change until the node is gone, or for some times. */
    private static void change(CqlSession session, Ledger ledger, Change change) {
        try {
            int times = change == Change.DROP ? DROPS : Integer.MAX_VALUE;
            for (int time = 0; time < times; time++) {
                switch (change) {
                    case TRUNCATE -> {
                        int began = ledger.beginTruncation();
                        session.execute("TRUNCATE changes");
                        ledger.endTruncation(began);
                    }
                    case DROP -> {
                        int began = ledger.beginTruncation();
                        session.execute("DROP TABLE changes");
                        session.execute(definition("changes"));
                        ledger.endTruncation(began);
                    }
                    case ALTER -> session.execute("ALTER TABLE changes WITH memtable = '"
                            + (time % 2 == 0 ? "trie" : memtable()) + "'");
                }
            }
        } catch (DriverException killed) {
            // The node is gone, as it should be.
        }
    }

    private static void check(Nodes nodes, String table, Ledger ledger, String when) {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            BitSet found = Writers.read(session, table, ConsistencyLevel.ONE);
            ledger.check(found, when);
        }
    }

    private static void create(Nodes nodes, String table) {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("USE " + KEYSPACE);
            session.execute(definition(table));
        }
    }

    private static String definition(String table) {
        return "CREATE TABLE IF NOT EXISTS " + table
                + " (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = '" + memtable() + "'";
    }

    private static String memtable() {
        return Sides.MEMTABLES.get(1);
    }
}
