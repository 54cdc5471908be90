package io.aiodb.cassandra.table;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * When writes to tables in stores are in the commit log, too. A store has a log of its own. But Cassandra asks the memtable
 * that the table had when the statement was prepared ({@code CassandraKeyspaceWriteHandler.addToCommitLog}). So while a
 * table comes to a store, and for some time after it has gone, a write that skipped the commit log could be in another
 * memtable, and be lost if the node ended.
 */
public final class WriteLogging {
    /** Far longer than a write waits before it is given up. */
    private static final long DEPARTURE_NANOS = 120_000_000_000L;

    private static final AtomicInteger SCHEMA_CHANGES = new AtomicInteger();
    private static final AtomicInteger PERIODS = new AtomicInteger();
    private static volatile long lastDeparture = System.nanoTime() - DEPARTURE_NANOS;

    private WriteLogging() {}

    /** Whether writes of now are in the commit log. */
    public static boolean isOn() {
        return SCHEMA_CHANGES.get() > 0 || System.nanoTime() - lastDeparture <= DEPARTURE_NANOS;
    }

    /** How many periods have begun, since the node started and its commit log was empty, in which writes are logged. */
    static int periods() {
        return PERIODS.get();
    }

    /** Says that a table goes to another memtable. */
    public static void tableDeparts() {
        PERIODS.incrementAndGet();
        lastDeparture = System.nanoTime();
    }

    /** Makes a change of the schema, while writes are logged. */
    public static void changeSchema(Runnable change) {
        PERIODS.incrementAndGet();
        SCHEMA_CHANGES.incrementAndGet();
        try {
            change.run();
        } finally {
            SCHEMA_CHANGES.decrementAndGet();
        }
    }
}
