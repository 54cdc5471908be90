package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.FrameWriter;
import io.aiodb.cassandra.format.RowMerger;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.read.RenewedRows;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.BulkWriter;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Replaces the frames that updates have appended by the one that is left of them. Each call reads again, merges and writes
 * one batch while the partition's writers wait, so no frame that they append is lost.
 */
final class EntryRewriter {
    /** A range delete costs the store more than a delete, until it has carried it out. */
    private static final int MAX_SINGLE_DELETES = 100;

    private final StoredTable storedTable;
    private final TableMetadata metadata;
    private final Table table;
    private final FrameWriter frames = new FrameWriter();
    private final Batch batch = new Batch();

    EntryRewriter(StoredTable storedTable, TableMetadata metadata) {
        this.storedTable = storedTable;
        this.metadata = metadata;
        this.table = storedTable.table();
    }

    /**
     * Replaces rows of a partition, or its static row, by what {@code keep} makes of them; null removes. Rows stay as they
     * are that have columns which this version of the table does not know, see {@link RowMerger#read}. False if any stayed.
     */
    boolean rows(Object partition, List<byte[]> keys, boolean isStatic, UnaryOperator<Row> keep) {
        RowMerger merger = new RowMerger(isStatic, storedTable.headers(), metadata);
        AtomicBoolean all = new AtomicBoolean(true);
        boolean replaced = replace(partition, () -> {
            for (byte[] key : keys) {
                byte[] found = table.get(key);
                if (found == null) {
                    continue;
                }
                if (!merger.read(ByteBuffer.wrap(found))) {
                    all.set(false);
                    continue;
                }
                Row row = merger.row();
                Row kept = row == null ? null : keep.apply(row);
                if (kept == null || kept.isEmpty()) {
                    batch.delete(table, ByteBuffer.wrap(key));
                } else {
                    ByteBuffer frame = merger.frame(kept);
                    writeFull(frame.remaining());
                    batch.put(table, ByteBuffer.wrap(key), frame);
                }
            }
        });
        return replaced && all.get();
    }

    /** Replaces a partition's deletions by the last one, or removes it too if it need not be kept. */
    void deletion(StoredKey.Partition partition, Predicate<DeletionTime> keep) {
        byte[] key = partition.entry(StoredKey.DELETION);
        replace(partition.key(), () -> {
            byte[] found = table.get(key);
            if (found == null) {
                return;
            }
            MutableDeletionInfo deletions = MutableDeletionInfo.live();
            FrameReader.addDeletions(ByteBuffer.wrap(found), deletions);
            DeletionTime time = deletions.getPartitionDeletion();
            if (keep.test(time)) {
                batch.put(table, ByteBuffer.wrap(key), frames.deletion(time));
            } else {
                batch.delete(table, ByteBuffer.wrap(key));
            }
        });
    }

    /** Replaces a partition's range tombstones by others that do not overlap, without the ones that need not be kept. */
    void rangeTombstones(StoredKey.Partition partition, Predicate<DeletionTime> keep) {
        replace(partition.key(), () -> {
            MutableDeletionInfo deletions = takeRangeTombstones(partition);
            StoredKey key = new StoredKey().partition(partition.key());
            Iterator<RangeTombstone> merged = deletions.rangeIterator(false);
            while (merged.hasNext()) {
                RangeTombstone tombstone = merged.next();
                Slice deleted = tombstone.deletedSlice();
                if (!deleted.isEmpty(metadata.comparator) && keep.test(tombstone.deletionTime())) {
                    var start = metadata.comparator.asByteComparable(deleted.start());
                    key.entry(StoredKey.RANGE_TOMBSTONE, start);
                    batch.put(table, key.buffer(), frames.rangeTombstone(tombstone, metadata));
                }
            }
            if (batch.encoded().limit() > BulkWriter.MAX_BATCH_BYTES) {
                // They must be replaced together, so these stay as they are.
                batch.clear();
            }
        });
    }

    /** Reads a partition's range tombstones, and removes them with the batch: many of them as one range. */
    private MutableDeletionInfo takeRangeTombstones(StoredKey.Partition partition) {
        MutableDeletionInfo deletions = MutableDeletionInfo.live();
        byte[] from = partition.entry(StoredKey.RANGE_TOMBSTONE);
        byte[] to = partition.entry(StoredKey.ROW);
        boolean asRange = to.length <= table.store().capabilities().maxRangeBoundBytes();
        try (Rows stored = new RenewedRows(table, Range.all().from(from).before(to))) {
            while (stored.next()) {
                FrameReader.addRangeTombstones(stored.value(), deletions, metadata);
                if (batch.size() < MAX_SINGLE_DELETES || !asRange) {
                    batch.delete(table, stored.key());
                }
            }
        }
        if (asRange && batch.size() == MAX_SINGLE_DELETES) {
            batch.clear();
            batch.deleteRange(table, ByteBuffer.wrap(from), ByteBuffer.wrap(to));
        }
        return deletions;
    }

    /** Each row stays what it is, so they need not be replaced together. */
    private void writeFull(int nextBytes) {
        boolean full = batch.encoded().limit() + nextBytes > BulkWriter.MAX_OPERAND_BYTES;
        if (full && batch.size() > 0) {
            storedTable.open().store().write(batch, Durability.INTERVAL);
            batch.clear();
        }
    }

    /**
     * Writes the batch that {@code fill} makes. Does not, and returns false, while an update is there in part: rows that it
     * still brings may be hidden by a deletion that would go.
     */
    private boolean replace(Object partition, Runnable fill) {
        OpenStore open = storedTable.open();
        int stripe = PartitionLocks.of(partition);
        AtomicBoolean replaced = new AtomicBoolean();
        open.locks().replace(stripe, () -> {
            if (storedTable.unfinished().isIn(stripe)) {
                return;
            }
            replaced.set(true);
            try {
                fill.run();
                if (batch.size() > 0) {
                    open.store().write(batch, Durability.INTERVAL);
                }
            } finally {
                batch.clear();
            }
        });
        return replaced.get();
    }
}
