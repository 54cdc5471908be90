package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.read.SizeSample;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import java.util.function.BooleanSupplier;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.CompactionInfo;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.db.lifecycle.View;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.TimeUUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A {@link Purge} of a whole table. */
public final class PurgeTask extends StoreTask {
    private static final Logger LOGGER = LoggerFactory.getLogger(PurgeTask.class);

    private final long gcBefore;

    /** Null until it begins. */
    private volatile Purge purge;

    /** How many there were when it began, about. */
    private volatile long allBytes;

    private PurgeTask(ColumnFamilyStore cfs, StoredTable storedTable, long gcBefore) {
        super(cfs, LifecycleTransaction.offline(OperationType.COMPACTION), storedTable);
        this.gcBefore = gcBefore;
    }

    /** A pass, if enough was written since the last one, or much may have expired; otherwise null. */
    public static AbstractCompactionTask ifDue(ColumnFamilyStore cfs, long gcBefore) {
        StoredTable storedTable = storedTable(cfs);
        boolean due = storedTable != null
                && storedTable.purgeSchedule().begin(storedTable.stats(), gcBefore, () -> size(cfs, storedTable));
        return due ? new PurgeTask(cfs, storedTable, gcBefore) : null;
    }

    /** A pass; null if there is nothing to go through, or one is under way. */
    public static AbstractCompactionTask now(ColumnFamilyStore cfs, long gcBefore) {
        StoredTable storedTable = storedTable(cfs);
        boolean free = storedTable != null && storedTable.purgeSchedule().beginNow();
        return free ? new PurgeTask(cfs, storedTable, gcBefore) : null;
    }

    private static long size(ColumnFamilyStore cfs, StoredTable storedTable) {
        return SizeSample.sample(storedTable, null, null, cfs.metadata().partitioner).bytes();
    }

    private static StoredTable storedTable(ColumnFamilyStore cfs) {
        Memtable current = cfs.getTracker().getView().getCurrentMemtable();
        return current.isClean() ? null : StoredMemtable.storedTableOf(current);
    }

    @Override
    void work(BooleanSupplier stopped) {
        long began = System.nanoTime();
        allBytes = size(cfs, storedTable);
        purge = new Purge(storedTable, cfs.metadata(), this::purger, FBUtilities.nowInSeconds());
        purge.run(stopped);
        LOGGER.info(
                "Purged {}: read {}, rewrote {} entries, in {} ms",
                cfs.metadata(),
                FBUtilities.prettyPrintMemory(purge.bytes()),
                purge.rewritten(),
                (System.nanoTime() - began) / 1_000_000);
    }

    @Override
    void end() {
        storedTable.purgeSchedule().end(bytes());
    }

    /**
     * As {@code CompactionController.getPurgeEvaluator} decides: old enough, and nothing older lies anywhere else that it
     * would have to hide.
     */
    private DeletionPurger purger() {
        boolean none = cfs.getNeverPurgeTombstones()
                || cfs.getCompactionStrategyManager().onlyPurgeRepairedTombstones()
                || !storedTable.purgeSchedule().replayBound().raise(cfs, storedTable);
        return (timestamp, localDeletionTime) ->
                !none && localDeletionTime < gcBefore && timestamp < oldestElsewhere();
    }

    /**
     * Asked for each tombstone: rows that streams bring are there from one moment to the next. Memtables and SSTables are
     * those of one moment: a memtable that is flushed between two would be in neither.
     */
    private long oldestElsewhere() {
        long oldest = Long.MAX_VALUE;
        View view = cfs.getTracker().getView();
        for (SSTableReader sstable : view.liveSSTables()) {
            oldest = Math.min(oldest, sstable.getMinTimestamp());
        }
        for (Memtable memtable : view.getAllMemtables()) {
            if (StoredMemtable.storedTableOf(memtable) != storedTable && !memtable.isClean()) {
                oldest = Math.min(oldest, memtable.getMinTimestamp());
            }
        }
        return oldest;
    }

    @Override
    CompactionInfo progress(TimeUUID id) {
        long total = Math.max(allBytes, bytes());
        return CompactionInfo.withoutSSTables(
                cfs.metadata(), compactionType, bytes(), total, allBytes, CompactionInfo.Unit.BYTES, id);
    }

    private long bytes() {
        Purge begun = purge;
        return begun == null ? 0 : begun.bytes();
    }
}
