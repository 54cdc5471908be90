package io.aiodb.cassandra;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Makes the memtables of one configuration.
 *
 * @param configuration of all of them; factories are equal if theirs are
 */
record AiodbFactory(StoreConfiguration configuration) implements Memtable.Factory {
    private static final String VERSION = "5.0.9";

    /** Far longer than a write waits before it is given up. */
    private static final long DEPARTURE_NANOS = 120_000_000_000L;

    private static final AtomicInteger SCHEMA_CHANGES = new AtomicInteger();
    private static final AtomicInteger LOGGED_PERIODS = new AtomicInteger();
    private static volatile long lastDeparture = System.nanoTime() - DEPARTURE_NANOS;

    @Override
    public Memtable create(
            AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, Memtable.Owner owner) {
        SystemTables.refuse(metadata.get());
        OpenStore open = OpenStore.of(configuration);
        return new AiodbMemtable(this, StoredTable.attach(open, metadata.id), commitLogLowerBound, metadata, owner);
    }

    /**
     * Refuses to go on in a node that it is not made for. Another version of Cassandra may call a memtable in other ways, and
     * lose rows.
     *
     * @throws ConfigurationException that says what is missing
     */
    static void requireNode() {
        AiodbSchemaHandlerFactory.require();
        String version = FBUtilities.getReleaseVersionString();
        if (!version.equals(VERSION)) {
            throw new ConfigurationException("this aiodb was made for Apache Cassandra " + VERSION + ", and this is "
                    + version + ": take the jar for that version");
        }
    }

    /**
     * The store has a log of its own. But Cassandra asks the memtable that the table had when the statement was prepared. So
     * while a table comes here, and for some time after it has gone, what skipped the commit log could be in another
     * memtable, and be lost if the node ended.
     */
    @Override
    public boolean writesShouldSkipCommitLog() {
        return !areWritesLogged();
    }

    /** Whether the commit log has what is written now. */
    static boolean areWritesLogged() {
        return SCHEMA_CHANGES.get() > 0 || System.nanoTime() - lastDeparture <= DEPARTURE_NANOS;
    }

    /** How many periods have begun, since the node started and its commit log was empty, in which writes are logged. */
    static int loggedPeriods() {
        return LOGGED_PERIODS.get();
    }

    /** Says that a table goes to another memtable. */
    static void tableDeparts() {
        LOGGED_PERIODS.incrementAndGet();
        lastDeparture = System.nanoTime();
    }

    /** Makes a change of the schema. */
    static void changeSchema(Runnable change) {
        LOGGED_PERIODS.incrementAndGet();
        SCHEMA_CHANGES.incrementAndGet();
        try {
            change.run();
        } finally {
            SCHEMA_CHANGES.decrementAndGet();
        }
    }

    /**
     * False, though they are: otherwise Cassandra would not replay what the commit log has from before the table came here,
     * and forget it.
     */
    @Override
    public boolean writesAreDurable() {
        return false;
    }

    @Override
    public TableMetrics.ReleasableMetric createMemtableMetrics(TableMetadataRef metadata) {
        return new StoreMetrics(OpenStore.of(configuration), metadata);
    }

    @Override
    public boolean streamToMemtable() {
        return true;
    }

    @Override
    public boolean streamFromMemtable() {
        return true;
    }
}
