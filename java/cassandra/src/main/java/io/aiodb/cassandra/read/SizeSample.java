package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.dht.Token;

/**
 * How much a range of a stored table holds, about: exact where it is little, projected from its beginning where it is much.
 *
 * @param partitions at least 1 unless there is nothing
 * @param partitionKeyBytes of the names of all of them
 * @param bytes of all rows
 */
public record SizeSample(long partitions, long partitionKeyBytes, long bytes) {
    /** How many entries are looked at. */
    private static final int SAMPLE = 1000;

    /** Looks at the beginning of a range, from a position to before another; null or the minimum where there is none. */
    public static SizeSample sample(
            StoredTable storedTable, PartitionPosition from, PartitionPosition to, IPartitioner partitioner) {
        Table table = storedTable.tableOrNull();
        if (table == null) {
            return new SizeSample(0, 0, 0);
        }
        Range range = isBound(from) ? Range.all().from(bound(from)) : Range.all();
        range = isBound(to) ? range.before(bound(to)) : range;
        long entries = 0;
        long partitions = 0;
        long nameBytes = 0;
        long bytes = 0;
        StoredKey.Partition current = null;
        try (Rows rows = new RenewedRows(table, range.limit(SAMPLE))) {
            while (entries < SAMPLE && rows.next()) {
                ByteBuffer key = rows.key();
                entries++;
                bytes += key.remaining() + rows.value().remaining();
                if (current == null || !current.has(key)) {
                    current = StoredKey.parse(key, partitioner);
                    partitions++;
                    nameBytes += current.key().getKeyLength();
                }
            }
        }
        if (entries < SAMPLE) {
            return new SizeSample(partitions, nameBytes, bytes);
        }
        double times = (double) table.estimatedRows() / entries;
        if ((isBound(from) || isBound(to)) && partitions > 1 && partitioner.splitter().isPresent()) {
            // Partitions lie evenly on the ring.
            Token least = partitioner.getMinimumToken();
            Token begin = isBound(from) ? from.getToken() : least;
            Token end = isBound(to) ? to.getToken() : least;
            times = begin.size(end) / begin.size(current.key().getToken());
        }
        times = Math.max(1.0, times);
        return new SizeSample((long) (partitions * times), (long) (nameBytes * times), (long) (bytes * times));
    }

    private static boolean isBound(PartitionPosition position) {
        return position != null && !position.isMinimum();
    }

    private static byte[] bound(PartitionPosition position) {
        return StoredKey.bound(position.asComparableBound(true));
    }
}
