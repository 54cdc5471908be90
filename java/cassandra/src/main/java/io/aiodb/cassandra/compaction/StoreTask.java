package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.StoreException;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.ActiveCompactionsTracker;
import org.apache.cassandra.db.compaction.CompactionInfo;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.db.compaction.writers.CompactionAwareWriter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.TimeUUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Work on the rows of a table that Cassandra takes for a compaction: it runs on Cassandra's threads, is listed by nodetool,
 * and can be stopped ({@code CompactionInfo.Holder}). But it writes no SSTables.
 */
abstract class StoreTask extends AbstractCompactionTask {
    private static final Logger LOGGER = LoggerFactory.getLogger(StoreTask.class);

    final StoredTable storedTable;

    StoreTask(ColumnFamilyStore cfs, LifecycleTransaction transaction, StoredTable storedTable) {
        super(cfs, transaction);
        this.storedTable = storedTable;
    }

    /** Does it, unless it is stopped before. */
    abstract void work(BooleanSupplier stopped);

    /** How far it is. */
    abstract CompactionInfo progress(TimeUUID id);

    /** Called at its end, however it came. */
    void end() {}

    @Override
    public final CompactionAwareWriter getCompactionAwareWriter(
            ColumnFamilyStore table,
            Directories directories,
            LifecycleTransaction txn,
            Set<SSTableReader> nonExpiredSSTables) {
        throw new UnsupportedOperationException("work on a store writes no SSTables");
    }

    @Override
    protected final int executeInternal(ActiveCompactionsTracker activeCompactions) {
        run();
        return transaction.originals().size();
    }

    @Override
    protected final void runMayThrow() {
        CompactionInfo.Holder listed = listed();
        CompactionManager.instance.active.beginCompaction(listed);
        try {
            work(listed::isStopRequested);
        } catch (StoreException.NoSuchTable truncated) {
            LOGGER.info("{} of {} ended with its rows", getClass().getSimpleName(), cfs.metadata());
        } finally {
            CompactionManager.instance.active.finishCompaction(listed);
            end();
        }
    }

    private CompactionInfo.Holder listed() {
        TimeUUID id = TimeUUID.Generator.nextTimeUUID();
        return new CompactionInfo.Holder() {
            @Override
            public CompactionInfo getCompactionInfo() {
                return progress(id);
            }

            @Override
            public boolean isGlobal() {
                return false;
            }
        };
    }
}
