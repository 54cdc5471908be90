package io.aiodb.cassandra.write;

import io.aiodb.cassandra.format.FrameWriter;
import io.aiodb.cassandra.format.RowCover;
import io.aiodb.cassandra.format.SerializationHeaders;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.format.StoredTableStats;
import io.aiodb.cassandra.table.LatestTimestamps;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.cassandra.db.Columns;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.tracing.Tracing;

/**
 * Writes updates: one batch for each, of one append for each row and deletion, without reading. Rows that are newer than all
 * there is, and have all that a row can have, are put in the place of older ones. What is more than a batch, or longer than
 * stores append, reads and is written in parts. There is one writer for each thread.
 */
public final class UpdateWriter {
    private static final ThreadLocal<UpdateWriter> WRITERS = ThreadLocal.withInitial(UpdateWriter::new);

    /** A thread does not hold on to the buffers of a larger update. */
    private static final int MAX_KEPT_BYTES = 1 << 20;

    private final StoredKey key = new StoredKey();
    private final FrameWriter frames = new FrameWriter();
    private final Batch batch = new Batch();

    /** Of the update's rows, in their order; null for one that stands alone. */
    private final List<RowCover> covers = new ArrayList<>();

    /** Whether the batch is more than is written at once. */
    private boolean isLarge;

    /** The keys of entries of which it has more than stores append without reading. */
    private final List<byte[]> large = new ArrayList<>();

    /** The length of the longest frame that stores append without reading, in bytes. */
    private int longest;

    /** Whether its rows take the place of older ones. */
    private boolean isPut;

    private UpdateWriter() {}

    /**
     * Writes an update into a stored table. It is there as a whole, or not at all, and as durable as {@code durability} says
     * when this returns.
     *
     * @throws io.aiodb.store.StoreException if it is not there, or, of an update that is larger than a batch, not yet: it is
     *     there when the store has room again
     * @throws org.apache.cassandra.exceptions.InvalidRequestException if a key is longer than the store takes
     */
    public static void write(PartitionUpdate update, StoredTable storedTable, Durability durability) {
        UpdateWriter writer = WRITERS.get();
        try {
            writer.encodeAndWrite(update, storedTable, durability);
        } finally {
            if (writer.batch.encoded().limit() > MAX_KEPT_BYTES) {
                WRITERS.remove();
            }
            writer.batch.clear();
            writer.covers.clear();
            writer.large.clear();
        }
    }

    private void encodeAndWrite(PartitionUpdate update, StoredTable storedTable, Durability durability) {
        OpenStore open = storedTable.open();
        // Asked for before the update is covered: they are of the rows that are stored already.
        LatestTimestamps latest = storedTable.latestTimestamps();
        SerializationHeaders.Numbered header = storedTable.headers().forWriting(update.metadata(), update.columns());
        int stripe = PartitionLocks.of(update.partitionKey());
        long maxTimestamp = update.maxTimestamp();
        // No other thread may write to the stripe while rows are put: so a writer that waits for the disk meanwhile only
        // appends.
        long complete = completeSince(update, header.header().columns(false));
        long since = durability == Durability.SYNC ? Long.MIN_VALUE : complete;
        boolean put = isNewest(since, update, latest, storedTable);
        encode(update, storedTable, header, put);
        storedTable.cover(update, maxTimestamp);
        Runnable note = () -> {
            latest.raise(stripe, maxTimestamp);
            storedTable.purgeSchedule().writes(stripe, update);
        };
        Runnable write = () -> {
            note.run();
            open.store().write(batch, durability);
        };
        if (isLarge) {
            encode(update, storedTable, header, false);
            open.locks().writeInParts(stripe, () -> {
                note.run();
                LargeRows.merge(large, update, storedTable);
                long minTimestamp = StoredTableStats.stats(update).minTimestamp;
                LargeUpdate.write(batch, storedTable, update.partitionKey(), minTimestamp, durability);
            });
        } else if (put) {
            open.locks().replace(stripe, () -> {
                if (!isNewest(since, update, latest, storedTable)) {
                    encode(update, storedTable, header, false);
                }
                write.run();
            });
        } else {
            open.locks().write(stripe, write);
        }
        Tracing.trace("Wrote {} entries to the {} store", batch.size(), open.store().capabilities().name());
        boolean mayHide = StoredTableStats.hasDeletionTimes(update) || !update.metadata().droppedColumns.isEmpty();
        storedTable.purgeSchedule().wrote(batch.encoded().limit(), isPut, mayHide);
        open.mergeQueue().wrote(update, isPut ? 0 : longest, storedTable);
    }

    /**
     * Whether rows that are complete since a time are newer than all that is stored of their stripe, so may take its place.
     */
    private static boolean isNewest(
            long since, PartitionUpdate update, LatestTimestamps latest, StoredTable storedTable) {
        return latest.areBefore(PartitionLocks.of(update.partitionKey()), since)
                // Other replicas know of a deletion too, and repair would bring it back.
                && !storedTable.stats().mayHaveRowDeletions()
                && !storedTable.headers().hasLater(update.metadata());
    }

    /**
     * Notes the covers of an update's rows. Returns its earliest timestamp if it is nothing but rows with all that a row can
     * have, else the least number.
     */
    private long completeSince(PartitionUpdate update, Columns columns) {
        boolean only = update.deletionInfo().isLive() && update.staticRow().isEmpty();
        long since = only ? Long.MAX_VALUE : Long.MIN_VALUE;
        for (Row row : update) {
            RowCover cover = RowCover.of(row, columns);
            covers.add(cover);
            since = Math.min(since, cover == null || !cover.isComplete(columns) ? Long.MIN_VALUE : cover.earliest());
        }
        return since;
    }

    /** @param put whether rows take the place of older ones */
    private void encode(PartitionUpdate update, StoredTable storedTable, SerializationHeaders.Numbered header, boolean put) {
        TableMetadata metadata = update.metadata();
        Table table = storedTable.table();
        batch.clear();
        isLarge = false;
        large.clear();
        longest = 0;
        isPut = put;
        key.partition(update.partitionKey());
        DeletionInfo deletions = update.deletionInfo();
        if (!deletions.getPartitionDeletion().isLive()) {
            key.entry(StoredKey.DELETION);
            add(table, metadata, frames.deletion(deletions.getPartitionDeletion()), false);
        }
        if (deletions.hasRanges()) {
            Iterator<RangeTombstone> ranges = deletions.rangeIterator(false);
            while (ranges.hasNext()) {
                RangeTombstone range = ranges.next();
                var start = metadata.comparator.asByteComparable(range.deletedSlice().start());
                key.entry(StoredKey.RANGE_TOMBSTONE, start);
                add(table, metadata, frames.rangeTombstone(range, metadata), false);
            }
        }
        SerializationHelper helper = new SerializationHelper(header.header());
        if (!update.staticRow().isEmpty()) {
            key.entry(StoredKey.STATIC);
            RowCover cover = RowCover.of(update.staticRow(), header.header().columns(true));
            add(table, metadata, frames.row(update.staticRow(), cover, header, helper), false);
        }
        Iterator<RowCover> cover = covers.iterator();
        for (Row row : update) {
            key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(row.clustering()));
            add(table, metadata, frames.row(row, cover.next(), header, helper), put);
        }
    }

    private void add(Table table, TableMetadata metadata, ByteBuffer frame, boolean put) {
        KeyLimit.check(key.length(), metadata, table.store().capabilities());
        if (put) {
            batch.put(table, key.buffer(), frame);
        } else {
            batch.append(table, key.buffer(), frame);
        }
        if (frame.remaining() > BulkWriter.MAX_OPERAND_BYTES) {
            large.add(key.copy());
        } else {
            longest = Math.max(longest, frame.remaining());
        }
        isLarge = !large.isEmpty() || batch.encoded().limit() > BulkWriter.MAX_BATCH_BYTES;
    }
}
