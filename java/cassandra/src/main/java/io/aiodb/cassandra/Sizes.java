package io.aiodb.cassandra;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import org.apache.cassandra.dht.IPartitioner;

/**
 * How much a range of a generation holds, about: exact where it is little, projected from its beginning where it is much.
 *
 * @param partitions at least 1 unless there is nothing
 * @param partitionKeyBytes of the names of all of them
 * @param bytes of all rows
 */
record Sizes(long partitions, long partitionKeyBytes, long bytes) {
    /** How many entries are looked at. */
    private static final int SAMPLE = 1000;

    /** Looks at the beginning of a range; a bound that is null is the table's. */
    static Sizes sample(Generation generation, byte[] from, byte[] to, IPartitioner partitioner) {
        Table table = generation.tableOrNull();
        if (table == null) {
            return new Sizes(0, 0, 0);
        }
        Range range = from == null ? Range.all() : Range.all().from(from);
        range = to == null ? range : range.before(to);
        long entries = 0;
        long partitions = 0;
        long nameBytes = 0;
        long bytes = 0;
        try (Rows rows = table.scan(range.limit(SAMPLE))) {
            StoredKey.Partition current = null;
            while (rows.next()) {
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
            return new Sizes(partitions, nameBytes, bytes);
        }
        double times = Math.max(1.0, (double) table.estimatedRows() / entries);
        return new Sizes((long) (partitions * times), (long) (nameBytes * times), (long) (bytes * times));
    }
}
