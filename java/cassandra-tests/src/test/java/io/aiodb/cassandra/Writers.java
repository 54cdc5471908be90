package io.aiodb.cassandra;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.util.BitSet;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.LockSupport;

/** Keeps inserting rows into a table with the columns (id, c, v), many at a time, until it is told to stop. */
final class Writers implements AutoCloseable {
    private static final int IN_FLIGHT = 32;
    private static final int ROWS_PER_PARTITION = 10;
    private static final int PAGE = 500;
    private static final long PAUSE_NANOS = 5_000_000;

    private final CqlSession session;
    private final String table;
    private final Ledger ledger;
    private final ConsistencyLevel consistency;
    private final long pauseNanos;
    private final Semaphore room = new Semaphore(IN_FLIGHT);
    private final Thread thread = new Thread(this::run, "writers");
    private volatile boolean stopping;

    /** As fast as one node answers. */
    Writers(CqlSession session, String table, Ledger ledger) {
        this(session, table, ledger, ConsistencyLevel.ONE, 0);
    }

    /** On several nodes of this machine, which are to have time for more than that. */
    Writers(CqlSession session, String table, Ledger ledger, ConsistencyLevel consistency) {
        this(session, table, ledger, consistency, PAUSE_NANOS);
    }

    private Writers(
            CqlSession session, String table, Ledger ledger, ConsistencyLevel consistency, long pauseNanos) {
        this.consistency = consistency;
        this.session = session;
        this.table = table;
        this.ledger = ledger;
        this.pauseNanos = pauseNanos;
        thread.start();
    }

    private void run() {
        while (!stopping) {
            room.acquireUninterruptibly();
            LockSupport.parkNanos(pauseNanos);
            int row = ledger.send();
            SimpleStatement insert = SimpleStatement.newInstance(
                            "INSERT INTO " + table + " (id, c, v) VALUES (?, ?, ?)",
                            row / ROWS_PER_PARTITION,
                            row % ROWS_PER_PARTITION,
                            value(row))
                    .setConsistencyLevel(consistency);
            session.executeAsync(insert).whenComplete((result, failure) -> {
                // A row that failed stays in flight: it may have been written nevertheless.
                if (failure == null) {
                    ledger.acknowledge(row);
                }
                room.release();
            });
        }
        room.acquireUninterruptibly(IN_FLIGHT);
    }

    private static String value(int row) {
        return "the value of row " + row;
    }

    /** Waits until this many more rows were acknowledged. */
    void await(int rows) throws InterruptedException {
        for (int wanted = ledger.count() + rows; ledger.count() < wanted; ) {
            Thread.sleep(1);
        }
    }

    /** The rows that are there, each of which must have its value. */
    static BitSet read(CqlSession session, String table, ConsistencyLevel consistency) {
        BitSet found = new BitSet();
        SimpleStatement select = SimpleStatement.newInstance("SELECT id, c, v FROM " + table);
        for (Row row : session.execute(select.setConsistencyLevel(consistency).setPageSize(PAGE))) {
            int number = row.getInt(0) * ROWS_PER_PARTITION + row.getInt(1);
            if (!value(number).equals(row.getString(2))) {
                throw new AssertionError("row " + number + " has the value " + row.getString(2));
            }
            found.set(number);
        }
        return found;
    }

    /** Stops when the last insert was answered. */
    @Override
    public void close() {
        stopping = true;
        try {
            thread.join();
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }
}
