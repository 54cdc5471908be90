package io.aiodb.cassandra.read;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SizeSampleTest extends OneStoredTable {
    /** Of which a quarter is more than what is looked at. */
    private static final int PARTITIONS = 12_000;

    @BeforeEach
    void write() {
        for (int key = 0; key < PARTITIONS; key++) {
            PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key).timestamp(1);
            update.row("a", 1).add("v", "x");
            UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        }
    }

    private long partitions(long from, long to) {
        Range<PartitionPosition> rows = Range.makeRowRange(new Range<>(new LongToken(from), new LongToken(to)));
        return SizeSample.sample(storedTable, rows.left, rows.right, Murmur3Partitioner.instance).partitions();
    }

    @Test
    void aPartOfTheRingHasItsPartOfThePartitions() {
        long quarter = 1L << 62;
        long end = Long.MIN_VALUE;
        assertEquals(PARTITIONS, partitions(end, end), 0.1 * PARTITIONS);
        assertEquals(PARTITIONS / 4.0, partitions(-quarter, 0), 0.1 * PARTITIONS / 4);
        assertEquals(PARTITIONS / 4.0, partitions(quarter, end), 0.1 * PARTITIONS / 4);
        assertEquals(PARTITIONS / 1024.0, partitions(0, quarter / 256), 6);
    }
}
