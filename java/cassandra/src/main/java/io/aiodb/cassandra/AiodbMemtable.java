package io.aiodb.cassandra;

import io.aiodb.cassandra.format.AutoSnapshot;
import io.aiodb.cassandra.integration.SpaceUsed;
import io.aiodb.cassandra.integration.SystemTables;
import io.aiodb.cassandra.lifecycle.AutoSnapshotWriter;
import io.aiodb.cassandra.lifecycle.FlushSet;
import io.aiodb.cassandra.lifecycle.SnapshotWriter;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.read.SizeSample;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.DiskErrors;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.table.WriteLogging;
import io.aiodb.cassandra.write.LargeUpdate;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore.FlushReason;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.EmptyIterators;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.db.lifecycle.Tracker;
import org.apache.cassandra.db.memtable.AbstractMemtableWithCommitlog;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.LazilyInitializedUnfilteredRowIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.index.transactions.UpdateTransaction;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.notifications.INotification;
import org.apache.cassandra.notifications.INotificationConsumer;
import org.apache.cassandra.notifications.MemtableDiscardedNotification;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.concurrent.OpOrder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rows of a table in a store of this node. It is never full and never flushed: Cassandra writes a memtable to SSTables for
 * many reasons, of which only a change of the table's memtable remains. Truncates and drops let go of its stored table.
 *
 * <p>In {@code cassandra.yaml}, with the parameters of {@link StoreConfiguration}:
 *
 * <pre>{@code
 * memtable:
 *   configurations:
 *     aiodb:
 *       class_name: io.aiodb.cassandra.AiodbMemtable
 *       parameters:
 *         durability: interval
 * }</pre>
 */
public final class AiodbMemtable extends AbstractMemtableWithCommitlog implements StoredMemtable {
    private static final Logger LOGGER = LoggerFactory.getLogger(AiodbMemtable.class);

    private final AiodbFactory factory;
    private final Owner owner;
    private final StoredTable storedTable;
    private final SpaceUsed spaceUsed = new SpaceUsed();

    /** Why it will be switched out, as far as anybody asked. */
    private volatile FlushReason reason;

    private volatile boolean switchedOut;

    /** Nothing of it is wanted any more. */
    private volatile boolean cleared;

    /** Its rows are wanted in a snapshot before they go. */
    private volatile boolean kept;

    AiodbMemtable(
            AiodbFactory factory,
            StoredTable storedTable,
            AtomicReference<CommitLogPosition> commitLogLowerBound,
            TableMetadataRef metadata,
            Owner owner) {
        super(metadata, commitLogLowerBound);
        this.owner = owner;
        this.factory = factory;
        this.storedTable = storedTable;
    }

    /**
     * Cassandra calls this for a configuration of {@code cassandra.yaml} ({@code MemtableParams}, by reflection).
     *
     * @param parameters those of the configuration; they are taken out
     */
    public static Memtable.Factory factory(Map<String, String> parameters) {
        if (DatabaseDescriptor.isDaemonInitialized()) {
            SystemTables.requireOtherDefault(DatabaseDescriptor.getMemtableConfigurations(), AiodbMemtable.class);
            AiodbFactory.requireNode();
        }
        return new AiodbFactory(StoreConfiguration.parse(parameters));
    }

    @Override
    public StoredTable storedTable() {
        return storedTable;
    }

    @Override
    public long put(PartitionUpdate update, UpdateTransaction indexer, OpOrder.Group opGroup) {
        if (indexer != UpdateTransaction.NO_OP) {
            throw new InvalidRequestException(update.metadata() + " has an index, which its memtable does not support: drop"
                    + " the index, or use another memtable");
        }
        Durability durability = factory.configuration().durability();
        try {
            UpdateWriter.write(update, storedTable, durability);
        } catch (StoreException failure) {
            throw DiskErrors.ofWrite(failure, storedTable.open());
        }
        currentOperations.addAndGet(update.operationCount());
        // How much newer the update is than the rows that it meets is not known: nothing was read.
        return Long.MAX_VALUE;
    }

    @Override
    public UnfilteredRowIterator rowIterator(
            DecoratedKey key, Slices slices, ColumnFilter columns, boolean reversed, SSTableReadsListener listener) {
        return PartitionReader.read(storedTable, metadata(), key, slices, columns, reversed);
    }

    /** Opens nothing before the first row is asked for: some callers only look whether it is null, and never close it. */
    @Override
    public UnfilteredRowIterator rowIterator(DecoratedKey key) {
        if (!PartitionReader.exists(storedTable, key)) {
            return null;
        }
        TableMetadata metadata = metadata();
        return new LazilyInitializedUnfilteredRowIterator(key) {
            @Override
            protected UnfilteredRowIterator initializeIterator() {
                UnfilteredRowIterator read = PartitionReader.read(
                        storedTable, metadata, key, Slices.ALL, ColumnFilter.all(metadata), false);
                return read != null ? read : EmptyIterators.unfilteredRow(metadata, key, false);
            }
        };
    }

    @Override
    public UnfilteredPartitionIterator partitionIterator(
            ColumnFilter columns, DataRange range, SSTableReadsListener listener) {
        return PartitionScan.ofQuery(storedTable, metadata(), columns, range);
    }

    @Override
    public FlushablePartitionSet<?> getFlushSet(PartitionPosition from, PartitionPosition to) {
        // Rows that are streamed while the table lives cover no positions of the commit log.
        CommitLogPosition lower = switchedOut ? getCommitLogLowerBound() : CommitLogPosition.NONE;
        CommitLogPosition upper = switchedOut ? getFinalCommitLogUpperBound() : CommitLogPosition.NONE;
        return new FlushSet(this, metadata(), storedTable, from, to, lower, upper);
    }

    /**
     * Called where a flush begins to take the rows out of the store, and not for streams ({@code Flushing.flushRunnables}). Updates are
     * whole before, or their rest would be missing for good; without room for them the flush fails, and the rows stay.
     */
    @Override
    public LifecycleTransaction setFlushTransaction(LifecycleTransaction transaction) {
        LargeUpdate.finish(storedTable);
        return super.setFlushTransaction(transaction);
    }

    @Override
    public boolean shouldSwitch(FlushReason asked) {
        boolean wanted =
                switch (asked) {
                    case TRUNCATE, DROP -> true;
                    case SCHEMA_CHANGE -> !factory.keepsRowsAs(metadata().params.memtable.factory());
                    default -> false;
                };
        if (wanted) {
            reason = asked;
        } else if (asked != FlushReason.SCHEMA_CHANGE && asked != FlushReason.OWNED_RANGES_CHANGE) {
            sync();
        }
        return wanted;
    }

    /**
     * A caller that wants a flush wants all writes before it to survive a power cut. Then the commit log need not keep its
     * records of this memtable, which there are around changes of the schema; earlier ones belong to another memtable, and so do
     * those since it was switched out, which some callers do not know.
     */
    private void sync() {
        CommitLogPosition before = CommitLog.instance.getCurrentPosition();
        storedTable.sync();
        // The next memtable takes its first write after this is set, thus behind the position.
        if (!switchedOut) {
            CommitLog.instance.discardCompletedSegments(metadata().id, getCommitLogLowerBound(), before);
        }
    }

    @Override
    public void switchOut(OpOrder.Barrier writeBarrier, AtomicReference<CommitLogPosition> commitLogUpperBound) {
        super.switchOut(writeBarrier, commitLogUpperBound);
        if (reason == FlushReason.SCHEMA_CHANGE) {
            WriteLogging.tableDeparts();
        }
        // ColumnFamilyStore.dumpMemtable does not ask shouldSwitch: it lets go of rows that the commit log has nothing of.
        cleared = reason == null || reason == FlushReason.TRUNCATE || reason == FlushReason.DROP;
        if (reason == FlushReason.TRUNCATE
                && owner instanceof ColumnFamilyStore cfs
                && cfs.isAutoSnapshotEnabled()
                && storedTable.tableOrNull() != null) {
            keep(cfs, ColumnFamilyStore.SNAPSHOT_TRUNCATE_PREFIX);
        }
        if (!kept) {
            mark(cleared ? Catalog.State.CLEARED : Catalog.State.FLUSHING);
        }
        if (!cleared && owner instanceof ColumnFamilyStore cfs) {
            clearWhenFlushed(cfs.getTracker());
        }
        switchedOut = true;
    }

    /**
     * Cassandra discards a memtable when the queries have ended that read it ({@code Tracker.notifyDiscarded}). Until then
     * its SSTables may have been truncated, and a node that ended would find the rows here.
     */
    private void clearWhenFlushed(Tracker tracker) {
        tracker.subscribe(new INotificationConsumer() {
            @Override
            public void handleNotification(INotification notification, Object sender) {
                if (notification instanceof MemtableDiscardedNotification flushed && flushed.memtable == AiodbMemtable.this) {
                    tracker.unsubscribe(this);
                    mark(Catalog.State.CLEARED);
                }
            }
        });
    }

    /**
     * Sets the state of the stored table. Cassandra cannot turn back any more where this is called, so a failure is logged: what was
     * truncated, dropped or flushed is removed when it is discarded, in any state.
     */
    private void mark(Catalog.State next) {
        try {
            storedTable.mark(next);
        } catch (StoreException failure) {
            LOGGER.error(
                    "The rows of {} that are to leave the store in {} are not marked as {}: if the node ends before they are removed,"
                            + " they are there when it starts again",
                    metadata(), storedTable.open().directory(), next, failure);
        }
    }

    /** Has the rows written to a snapshot later. Where there is no room to say so in the store, only this process does it. */
    private void keep(ColumnFamilyStore cfs, String prefix) {
        AutoSnapshot plan = AutoSnapshotWriter.plan(cfs, prefix);
        try {
            storedTable.keep(plan);
        } catch (StoreException failure) {
            LOGGER.warn(
                    "The snapshot {} of {} is written now, and not when the node starts again if it ends meanwhile: {}",
                    plan.snapshot(), metadata(), failure.getMessage());
            storedTable.keepUnrecorded(plan);
            mark(Catalog.State.CLEARED);
        }
        kept = true;
    }

    @Override
    public void discard() {
        super.discard();
        if (owner instanceof ColumnFamilyStore cfs) {
            spaceUsed.end(cfs);
        }
        if (kept) {
            AutoSnapshotWriter.write(storedTable);
        } else {
            StoredTables.remove(storedTable);
        }
    }

    /** Has Cassandra say how much of the disk its rows take. */
    void reportSpace() {
        if (owner instanceof ColumnFamilyStore cfs) {
            spaceUsed.report(cfs, getLiveDataSize());
        }
    }

    /** Also clean is a memtable that was truncated or dropped: Cassandra shall not write it to SSTables. */
    @Override
    public boolean isClean() {
        return cleared || storedTable.stats().isEmpty();
    }

    /** Not 0 after a restart either, since then snapshots and streams would leave the table out. */
    @Override
    public long operationCount() {
        return isClean() ? 0 : Math.max(1, super.operationCount());
    }

    @Override
    public long partitionCount() {
        return SizeSample.sample(storedTable, null, null, metadata().partitioner).partitions();
    }

    @Override
    public long getLiveDataSize() {
        return SizeSample.sample(storedTable, null, null, metadata().partitioner).bytes();
    }

    @Override
    public long getMinTimestamp() {
        return storedTable.stats().isEmpty() ? NO_MIN_TIMESTAMP : storedTable.stats().minTimestamp();
    }

    @Override
    public long getMinLocalDeletionTime() {
        return storedTable.stats().minLocalDeletionTime();
    }

    /** Nothing of Cassandra's memory: the store has a budget of its own. */
    @Override
    public void addMemoryUsageTo(MemoryUsage usage) {}

    @Override
    public void markExtraOnHeapUsed(long additionalSpace, OpOrder.Group opGroup) {}

    @Override
    public void markExtraOffHeapUsed(long additionalSpace, OpOrder.Group opGroup) {}

    /** Called after changes of the schema that leave the table with this memtable. */
    @Override
    public void metadataUpdated() {
        StoreConfiguration now = StoredMemtable.Factory.configurationOf(metadata().params.memtable.factory());
        if (now != null) {
            storedTable.setModes(now.modes(), metadata());
        }
    }

    @Override
    public void localRangesUpdated() {}

    @Override
    public void performSnapshot(String snapshotName) {
        if (!(owner instanceof ColumnFamilyStore cfs)) {
            return;
        }
        if (isDropSnapshot(cfs, snapshotName)) {
            keep(cfs, ColumnFamilyStore.SNAPSHOT_DROP_PREFIX);
        } else {
            FlushSet all = new FlushSet(
                    this, metadata(), storedTable, null, null, CommitLogPosition.NONE, CommitLogPosition.NONE);
            File directory = Directories.getSnapshotDirectory(
                    cfs.getDirectories().getDirectoryForNewSSTables(), snapshotName);
            SnapshotWriter.write(cfs.metadata, cfs.newSSTableDescriptor(directory), all, cfs);
        }
    }

    /** Cassandra takes the table out of its keyspace before it takes the snapshot of a drop ({@code Keyspace.dropCf}). */
    private static boolean isDropSnapshot(ColumnFamilyStore cfs, String snapshotName) {
        return snapshotName.startsWith(ColumnFamilyStore.SNAPSHOT_DROP_PREFIX)
                && !cfs.keyspace.hasColumnFamilyStore(cfs.metadata.id);
    }

    @Override
    public String toString() {
        return "AiodbMemtable(" + metadata() + ", " + factory + ")";
    }
}
