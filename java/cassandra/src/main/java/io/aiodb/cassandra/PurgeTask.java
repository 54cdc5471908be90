package io.aiodb.cassandra;

import io.aiodb.store.StoreException;
import java.util.Set;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.ActiveCompactionsTracker;
import org.apache.cassandra.db.compaction.CompactionInfo;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.compaction.writers.CompactionAwareWriter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.TimeUUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A {@link Purge} as what Cassandra calls a compaction: it runs on its threads, is listed by nodetool, and can be stopped. */
final class PurgeTask extends AbstractCompactionTask {
    private static final Logger LOGGER = LoggerFactory.getLogger(PurgeTask.class);

    private final Generation generation;
    private final long gcBefore;

    private PurgeTask(ColumnFamilyStore cfs, Generation generation, long gcBefore) {
        super(cfs, LifecycleTransaction.offline(OperationType.COMPACTION));
        this.generation = generation;
        this.gcBefore = gcBefore;
    }

    /** A pass, if enough was written since the last one, or much may have expired; otherwise null. */
    static AbstractCompactionTask ifDue(ColumnFamilyStore cfs, long gcBefore) {
        Generation generation = generation(cfs);
        boolean due = generation != null && generation.purges().begin(generation.summary(), gcBefore);
        return due ? new PurgeTask(cfs, generation, gcBefore) : null;
    }

    /** A pass; null if there is nothing to go through, or one is under way. */
    static AbstractCompactionTask now(ColumnFamilyStore cfs, long gcBefore) {
        Generation generation = generation(cfs);
        boolean free = generation != null && generation.purges().beginNow();
        return free ? new PurgeTask(cfs, generation, gcBefore) : null;
    }

    private static Generation generation(ColumnFamilyStore cfs) {
        Memtable current = cfs.getTracker().getView().getCurrentMemtable();
        return current instanceof AiodbMemtable memtable && !memtable.isClean() ? memtable.generation() : null;
    }

    @Override
    public CompactionAwareWriter getCompactionAwareWriter(
            ColumnFamilyStore table,
            Directories directories,
            LifecycleTransaction txn,
            Set<SSTableReader> nonExpiredSSTables) {
        throw new UnsupportedOperationException("a purge writes no SSTables");
    }

    @Override
    protected int executeInternal(ActiveCompactionsTracker activeCompactions) {
        run();
        return 0;
    }

    @Override
    protected void runMayThrow() {
        long began = System.nanoTime();
        Purge purge = new Purge(generation, cfs.metadata(), purger(), FBUtilities.nowInSeconds());
        CompactionInfo.Holder progress = progress(purge);
        CompactionManager.instance.active.beginCompaction(progress);
        try {
            purge.run(progress::isStopRequested);
            LOGGER.info(
                    "Purged {}: read {}, rewrote {} entries, in {} ms",
                    cfs.metadata(),
                    FBUtilities.prettyPrintMemory(purge.bytes()),
                    purge.rewritten(),
                    (System.nanoTime() - began) / 1_000_000);
        } catch (StoreException.NoSuchTable truncated) {
            LOGGER.info("The purge of {} ended with its rows", cfs.metadata());
        } finally {
            CompactionManager.instance.active.finishCompaction(progress);
            generation.purges().end(purge.bytes());
        }
    }

    /** As compaction decides: old enough, and nothing older lies anywhere else that it would have to hide. */
    private DeletionPurger purger() {
        if (cfs.getNeverPurgeTombstones()
                || cfs.getCompactionStrategyManager().onlyPurgeRepairedTombstones()) {
            return (timestamp, localDeletionTime) -> false;
        }
        long oldest = Long.MAX_VALUE;
        for (SSTableReader sstable : cfs.getLiveSSTables()) {
            oldest = Math.min(oldest, sstable.getMinTimestamp());
        }
        for (Memtable memtable : cfs.getTracker().getView().getAllMemtables()) {
            boolean own = memtable instanceof AiodbMemtable other && other.generation() == generation;
            if (!own && !memtable.isClean()) {
                oldest = Math.min(oldest, memtable.getMinTimestamp());
            }
        }
        long elsewhere = oldest;
        return (timestamp, localDeletionTime) -> localDeletionTime < gcBefore && timestamp < elsewhere;
    }

    private CompactionInfo.Holder progress(Purge purge) {
        TimeUUID id = TimeUUID.Generator.nextTimeUUID();
        long total = Sizes.sample(generation, null, null, cfs.metadata().partitioner).bytes();
        return new CompactionInfo.Holder() {
            @Override
            public CompactionInfo getCompactionInfo() {
                return CompactionInfo.withoutSSTables(
                        cfs.metadata(),
                        compactionType,
                        purge.bytes(),
                        Math.max(total, purge.bytes()),
                        total,
                        CompactionInfo.Unit.BYTES,
                        id);
            }

            @Override
            public boolean isGlobal() {
                return false;
            }
        };
    }
}
