package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.BoundedUpdates;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.CompactionInfo;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.utils.TimeUUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves SSTables that lie beside the store into it, as what Cassandra calls a compaction. They go when all their rows are
 * in the store for good, and stay if anything comes between: rows that are in both are the same rows.
 */
public final class MoveTask extends StoreTask {
    private static final Logger LOGGER = LoggerFactory.getLogger(MoveTask.class);

    private final AtomicLong movedBytes = new AtomicLong();

    private MoveTask(ColumnFamilyStore cfs, LifecycleTransaction transaction, StoredTable storedTable) {
        super(cfs, transaction, storedTable);
    }

    /** Moves those of these SSTables that no repair is about; null if there are none, or others have them. */
    public static AbstractCompactionTask of(
            ColumnFamilyStore cfs, StoredTable storedTable, Iterable<SSTableReader> sstables) {
        List<SSTableReader> moved = new ArrayList<>();
        for (SSTableReader sstable : sstables) {
            if (!sstable.isPendingRepair()) {
                moved.add(sstable);
            }
        }
        LifecycleTransaction transaction =
                moved.isEmpty() ? null : cfs.getTracker().tryModify(moved, OperationType.COMPACTION);
        return transaction == null ? null : new MoveTask(cfs, transaction, storedTable);
    }

    @Override
    void work(BooleanSupplier stopped) {
        boolean whole = true;
        for (SSTableReader sstable : transaction.originals()) {
            whole = whole && move(sstable, stopped);
        }
        storedTable.sync();
        // A truncate or another memtable since then has taken its own decision about these rows.
        if (whole && StoredMemtable.storedTableOf(cfs) == storedTable) {
            LOGGER.info("Moved {} into the store", transaction.originals());
            transaction.obsoleteOriginals();
            transaction.finish();
        }
    }

    /** Writes all rows of an SSTable; false if that was stopped. */
    private boolean move(SSTableReader sstable, BooleanSupplier stopped) {
        ISSTableScanner partitions = sstable.getScanner();
        try (BoundedUpdates updates = new BoundedUpdates(partitions)) {
            long before = movedBytes.get();
            while (updates.hasNext()) {
                if (stopped.getAsBoolean()) {
                    return false;
                }
                UpdateWriter.write(updates.next(), storedTable, Durability.INTERVAL);
                movedBytes.set(before + partitions.getCurrentPosition());
            }
        }
        return true;
    }

    @Override
    CompactionInfo progress(TimeUUID id) {
        long total = transaction.originals().stream()
                .mapToLong(SSTableReader::uncompressedLength)
                .sum();
        return new CompactionInfo(
                cfs.metadata(), compactionType, movedBytes.get(), total, total, id, transaction.originals());
    }
}
