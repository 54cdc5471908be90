package io.aiodb.cassandra.write;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.RowMerger;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;

/**
 * Rows of which an update has more than stores append without reading. What is stored of them is merged before that is added:
 * so a row that is written again and again, and never read, is at most what is left of all earlier updates, and the last one.
 */
final class LargeRows {
    private LargeRows() {}

    /**
     * Merges what is stored of entries of an update's partition, with durability {@code INTERVAL}. The caller holds the stripe
     * alone. A merged row has the same deletions and no older cells, so this may be done while another update is there in part.
     *
     * @param keys of rows, static or not; others stay as they are
     */
    static void merge(List<byte[]> keys, PartitionUpdate update, StoredTable storedTable) {
        StoredKey.Partition partition = StoredKey.Partition.of(update.partitionKey());
        for (byte[] key : keys) {
            byte kind = partition.kind(ByteBuffer.wrap(key));
            if (kind == StoredKey.ROW || kind == StoredKey.STATIC) {
                merge(key, kind == StoredKey.STATIC, update, storedTable);
            }
        }
    }

    private static void merge(byte[] key, boolean isStatic, PartitionUpdate update, StoredTable storedTable) {
        byte[] found = storedTable.table().get(key);
        if (found == null || FrameReader.count(ByteBuffer.wrap(found)) == 1) {
            return;
        }
        RowMerger merger = new RowMerger(isStatic, storedTable.headers(), update.metadata());
        if (!merger.read(ByteBuffer.wrap(found))) {
            return;
        }
        Row row = merger.row();
        Batch batch = new Batch();
        if (row == null || row.isEmpty()) {
            batch.delete(storedTable.table(), ByteBuffer.wrap(key));
        } else {
            batch.put(storedTable.table(), ByteBuffer.wrap(key), merger.frame(row));
        }
        storedTable.open().store().write(batch, Durability.INTERVAL);
    }
}
