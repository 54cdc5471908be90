package io.aiodb.cassandra;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Iterator;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.SerializationHelper;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.tracing.Tracing;

/** Writes updates: one batch for each, of one append for each row and deletion, without reading. One for each thread. */
final class UpdateWriter {
    private static final ThreadLocal<UpdateWriter> WRITERS = ThreadLocal.withInitial(UpdateWriter::new);

    /** A thread does not hold on to what wrote a larger update. */
    private static final int MAX_KEPT_BYTES = 1 << 20;

    private final StoredKey key = new StoredKey();
    private final Frames.Writer frames = new Frames.Writer();
    private final Batch batch = new Batch();

    /** Whether the batch is more than is written at once. */
    private boolean isLarge;

    private UpdateWriter() {}

    /** Writes an update into a generation. It is there as a whole, or not at all. */
    static void write(PartitionUpdate update, Generation generation, Durability durability) {
        UpdateWriter writer = WRITERS.get();
        try {
            Table table = generation.table();
            writer.encode(update, table, generation.headers());
            generation.cover(update);
            writer.apply(update, generation, durability);
        } finally {
            if (writer.batch.encoded().limit() > MAX_KEPT_BYTES) {
                WRITERS.remove();
            }
            writer.batch.clear();
            writer.isLarge = false;
        }
    }

    private void apply(PartitionUpdate update, Generation generation, Durability durability) {
        OpenStore open = generation.open();
        int stripe = Stripes.of(update.partitionKey());
        if (isLarge) {
            open.stripes().writeInParts(stripe, () -> LargeUpdate.write(batch, generation, durability));
        } else {
            open.stripes().write(stripe, () -> open.store().write(batch, durability));
        }
        Tracing.trace("Appended {} entries to the {} store", batch.size(), open.store().capabilities().name());
        generation.purges().wrote(batch.encoded().limit());
        open.folder().wrote(update, generation);
    }

    private void encode(PartitionUpdate update, Table table, Headers headers) {
        TableMetadata metadata = update.metadata();
        key.partition(update.partitionKey());
        DeletionInfo deletions = update.deletionInfo();
        if (!deletions.getPartitionDeletion().isLive()) {
            key.entry(StoredKey.DELETION);
            append(table, metadata, frames.deletion(deletions.getPartitionDeletion()));
        }
        if (deletions.hasRanges()) {
            Iterator<RangeTombstone> ranges = deletions.rangeIterator(false);
            while (ranges.hasNext()) {
                RangeTombstone range = ranges.next();
                var start = metadata.comparator.asByteComparable(range.deletedSlice().start());
                key.entry(StoredKey.RANGE_TOMBSTONE, start);
                append(table, metadata, frames.rangeTombstone(range, metadata));
            }
        }
        Headers.Numbered header = headers.forWriting(metadata);
        SerializationHelper helper = new SerializationHelper(header.header());
        if (!update.staticRow().isEmpty()) {
            key.entry(StoredKey.STATIC);
            append(table, metadata, frames.row(update.staticRow(), header, helper));
        }
        for (Row row : update) {
            key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(row.clustering()));
            append(table, metadata, frames.row(row, header, helper));
        }
    }

    private void append(Table table, TableMetadata metadata, ByteBuffer frame) {
        AiodbQueryHandler.refuseLonger(key.length(), metadata, table.store().capabilities());
        batch.append(table, key.buffer(), frame);
        isLarge |= frame.remaining() > BulkWriter.MAX_OPERAND_BYTES
                || batch.encoded().limit() > BulkWriter.MAX_BATCH_BYTES;
    }
}
