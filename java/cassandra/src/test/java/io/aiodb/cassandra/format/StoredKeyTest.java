package io.aiodb.cassandra.format;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.store.Keys;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class StoredKeyTest {
    private final TableMetadata table = Schema.table();

    @Test
    void partitionsAreInTheOrderOfTheRing() {
        List<DecoratedKey> keys = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            keys.add(Schema.key(i));
        }
        for (DecoratedKey one : keys) {
            for (DecoratedKey other : keys) {
                int order = Keys.compare(
                        ByteBuffer.wrap(entry(one, StoredKey.ROW)), ByteBuffer.wrap(entry(other, StoredKey.DELETION)));
                assertEquals(
                        one.equals(other) ? 1 : Integer.signum(one.compareTo(other)), Integer.signum(order));
            }
        }
    }

    @Test
    void rowsAndBoundsAreInTheOrderOfTheComparator() {
        List<ClusteringPrefix<?>> places = new ArrayList<>();
        for (String a : List.of("", "a", "a\0", "ab", "b", "\u00fc")) {
            places.add(BufferClusteringBound.inclusiveStartOf(Schema.text(a)));
            places.add(BufferClusteringBound.exclusiveStartOf(Schema.text(a)));
            for (int b : new int[] {Integer.MIN_VALUE, -1, 0, 1, Integer.MAX_VALUE}) {
                ByteBuffer number = Int32Type.instance.decompose(b);
                places.add(Clustering.make(Schema.text(a), number));
                places.add(BufferClusteringBound.inclusiveEndOf(Schema.text(a), number));
                places.add(BufferClusteringBound.exclusiveEndOf(Schema.text(a), number));
            }
        }
        for (ClusteringPrefix<?> one : places) {
            for (ClusteringPrefix<?> other : places) {
                int order = Keys.compare(ByteBuffer.wrap(row(one)), ByteBuffer.wrap(row(other)));
                int expected = table.comparator.compare(one, other);
                assertEquals(Integer.signum(expected), Integer.signum(order), () -> one.toString(table) + " " + other.toString(table));
            }
        }
    }

    @Test
    void thePartitionIsFoundInAKey() {
        for (int i = 0; i < 100; i++) {
            byte[] key = new StoredKey()
                    .partition(Schema.key(i))
                    .entry(StoredKey.ROW, table.comparator.asByteComparable(Clustering.make(
                            Schema.text("x\0y"), Int32Type.instance.decompose(i))))
                    .copy();
            ByteBuffer shifted = ByteBuffer.allocate(key.length + 3).position(3).put(key).position(3);
            StoredKey.Partition partition = StoredKey.parse(shifted, Murmur3Partitioner.instance);
            assertEquals(Schema.key(i), partition.key());
            assertEquals(StoredKey.ROW, partition.kind(shifted));
            assertTrue(partition.has(shifted));
            assertFalse(partition.has(ByteBuffer.wrap(entry(Schema.key(i + 1), StoredKey.ROW))));
            assertArrayEquals(entry(Schema.key(i), StoredKey.END), partition.entry(StoredKey.END));
        }
    }

    private static byte[] entry(DecoratedKey key, byte kind) {
        return new StoredKey().partition(key).entry(kind).copy();
    }

    private byte[] row(ClusteringPrefix<?> place) {
        return new StoredKey()
                .partition(Schema.key(1))
                .entry(StoredKey.ROW, table.comparator.asByteComparable(place))
                .copy();
    }
}
