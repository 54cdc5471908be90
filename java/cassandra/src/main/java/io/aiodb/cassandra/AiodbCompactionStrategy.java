package io.aiodb.cassandra;

import io.aiodb.cassandra.compaction.MoveTask;
import io.aiodb.cassandra.compaction.PurgeTask;
import io.aiodb.cassandra.integration.TemporarySSTableWriter;
import io.aiodb.cassandra.integration.ValidationReader;
import io.aiodb.cassandra.integration.ValidationWriter;
import io.aiodb.cassandra.lifecycle.FlushSet;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.StoreException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.commitlog.IntervalSet;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy;
import org.apache.cassandra.db.lifecycle.ILifecycleTransaction;
import org.apache.cassandra.db.lifecycle.LifecycleNewTracker;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.index.Index;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableMultiWriter;
import org.apache.cassandra.schema.MemtableParams;
import org.apache.cassandra.utils.TimeUUID;

/**
 * The compaction of tables whose memtable is aiodb; {@link AiodbSchemaHandlerFactory} gives it to them. SSTables that
 * lie beside the store are compacted by size, as usual, until a user's compaction moves them into it. In addition it sees to
 * it that the store gives up rows that are expired or deleted for good, that the SSTables which repair and streaming write
 * for themselves go away, and that a node does not start without the configuration that the table needs.
 */
public final class AiodbCompactionStrategy extends SizeTieredCompactionStrategy {
    /**
     * Cassandra makes several for each table.
     *
     * @param cfs the table
     * @param options as for {@link SizeTieredCompactionStrategy}
     */
    public AiodbCompactionStrategy(ColumnFamilyStore cfs, Map<String, String> options) {
        super(cfs, options);
        requireConfiguration(cfs);
    }

    /**
     * Cassandra would take a memtable of its own ({@code MemtableParams.getWithFallback}) where the configuration of the
     * table's is missing or wrong, and its rows would seem to be gone.
     */
    private static void requireConfiguration(ColumnFamilyStore cfs) {
        String name = cfs.metadata().params.memtable.configurationKey();
        try {
            MemtableParams.get(name);
        } catch (ConfigurationException failure) {
            throw new ConfigurationException(
                    "the table " + cfs.metadata() + " has memtable = '" + name + "', which cassandra.yaml does not give as it"
                            + " must: put it back under memtable: configurations: " + failure.getMessage(),
                    failure);
        }
    }

    /** Asked each minute for each table, so a server that is away is no failure here: there is just nothing to do. */
    @Override
    public synchronized AbstractCompactionTask getNextBackgroundTask(long gcBefore) {
        AbstractCompactionTask task = super.getNextBackgroundTask(gcBefore);
        StoredTable storedTable = StoredMemtable.storedTableOf(cfs);
        if (storedTable == null) {
            return task;
        }
        try {
            reportSpace();
            return task != null ? task : PurgeTask.ifDue(cfs, gcBefore);
        } catch (StoreException.Unavailable away) {
            storedTable.open().outage().noticed(away);
            return task;
        }
    }

    /** {@code nodetool compact}: SSTables are moved into the store, and rows that nobody can see leave it. */
    @Override
    public synchronized Collection<AbstractCompactionTask> getMaximalTask(long gcBefore, boolean splitOutput) {
        reportSpace();
        StoredTable storedTable = StoredMemtable.storedTableOf(cfs);
        if (storedTable == null) {
            return super.getMaximalTask(gcBefore, splitOutput);
        }
        List<AbstractCompactionTask> tasks = new ArrayList<>();
        AbstractCompactionTask move = MoveTask.of(cfs, storedTable, filterSuspectSSTables(getSSTables()));
        if (move != null) {
            tasks.add(move);
        }
        AbstractCompactionTask purge = PurgeTask.now(cfs, gcBefore);
        if (purge != null) {
            tasks.add(purge);
        }
        return tasks.isEmpty() ? null : tasks;
    }

    /** Cassandra asks each minute for tasks, so the space that it shows for the table is at most about as old. */
    private void reportSpace() {
        if (cfs.getTracker().getView().getCurrentMemtable() instanceof AiodbMemtable memtable) {
            memtable.reportSpace();
        }
    }

    /**
     * Cassandra writes a memtable's rows for streams without a transaction
     * ({@code ColumnFamilyStore.writeAndAddMemtableRanges}), and forgets to remove that SSTable.
     */
    @Override
    public SSTableMultiWriter createSSTableMultiWriter(
            Descriptor descriptor,
            long keyCount,
            long repairedAt,
            TimeUUID pendingRepair,
            boolean isTransient,
            IntervalSet<CommitLogPosition> commitLogPositions,
            int sstableLevel,
            SerializationHeader header,
            Collection<Index.Group> indexGroups,
            LifecycleNewTracker tracker) {
        if (FlushSet.isToBeValidated()) {
            return new ValidationWriter(ValidationReader.open(cfs, descriptor, header, keyCount));
        }
        boolean temporary = tracker.opType() == OperationType.FLUSH && !(tracker instanceof ILifecycleTransaction);
        LifecycleTransaction own = temporary ? LifecycleTransaction.offline(OperationType.STREAM) : null;
        SSTableMultiWriter writer = super.createSSTableMultiWriter(
                descriptor,
                keyCount,
                repairedAt,
                pendingRepair,
                isTransient,
                commitLogPositions,
                sstableLevel,
                header,
                indexGroups,
                temporary ? own : tracker);
        return temporary ? new TemporarySSTableWriter(writer, own) : writer;
    }
}
