package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.cassandra.compaction.Purge;
import io.aiodb.cassandra.fixture.PartitionText;
import io.aiodb.cassandra.fixture.RandomUpdates;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.fixture.TemporaryStore;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random updates of every kind, read back in every way, are what Cassandra makes of the same updates in memory. */
class ModelTest {
    private static final long SEED = 0xA10DB;
    private static final int ROUNDS = 24;
    private static final int UPDATES = 120;
    private static final long NOW_SECONDS = RandomUpdates.NOW_SECONDS;

    /** Of the round. */
    private TableMetadata table;

    @TempDir
    Path directory;

    @Test
    void readsAreWhatCassandraMakesOfTheSameUpdates() {
        Random seeds = new Random(SEED);
        for (int round = 0; round < ROUNDS; round++) {
            long seed = seeds.nextLong();
            // Without the map a row may be all that it can be, and take the place of an older one.
            table = round % 2 == 0 ? Schema.table() : Schema.withoutMap();
            try (TemporaryStore store = new TemporaryStore(directory.resolve("store" + round))) {
                round(store, new Random(seed));
            } catch (AssertionError failure) {
                throw new AssertionError("with the seed " + seed, failure);
            }
        }
    }

    private void round(TemporaryStore store, Random random) {
        StoredTable storedTable = StoredTables.attach(store.open(), table.id);
        Map<DecoratedKey, List<PartitionUpdate>> written = new TreeMap<>();
        int kinds = 1 + random.nextInt(6);
        boolean inOrder = random.nextBoolean();
        for (int i = 0; i < UPDATES; i++) {
            int timestamp = 1 + (inOrder ? i / 3 : random.nextInt(UPDATES / 3));
            PartitionUpdate update = RandomUpdates.update(table, random, kinds, timestamp);
            UpdateWriter.write(update, storedTable, Durability.INTERVAL);
            written.computeIfAbsent(update.partitionKey(), key -> new ArrayList<>()).add(update);
            if (i == UPDATES / 2) {
                storedTable = StoredTables.attach(store.restart(), table.id);
            }
        }
        Map<DecoratedKey, PartitionUpdate> expected = new HashMap<>();
        written.forEach((key, updates) -> expected.put(key, PartitionUpdate.merge(updates)));
        for (int i = 0; i < 100; i++) {
            DecoratedKey key = Schema.key(random.nextInt(RandomUpdates.PARTITIONS + 1));
            Slices slices = slices(random);
            boolean reversed = random.nextBoolean();
            assertEquals(
                    expectedRead(expected.get(key), slices, reversed),
                    text(read(storedTable, key, slices, reversed), read(storedTable, key, slices, reversed)),
                    () -> key + " " + slices + (reversed ? " reversed" : ""));
        }
        assertScan(storedTable, written, expected);
        // Tombstones that hide nothing any more may go, and nothing else may change.
        new Purge(storedTable, table, () -> (timestamp, time) -> false, NOW_SECONDS).run(() -> false);
        assertScan(storedTable, written, expected);
        assertEveryEntryIsOfOneUpdate(storedTable);
    }

    private static void assertEveryEntryIsOfOneUpdate(StoredTable storedTable) {
        try (Rows rows = storedTable.tableOrNull().scan(Range.all())) {
            while (rows.next()) {
                assertEquals(1, FrameReader.count(rows.value()));
            }
        }
    }

    private void assertScan(
            StoredTable storedTable,
            Map<DecoratedKey, List<PartitionUpdate>> written,
            Map<DecoratedKey, PartitionUpdate> expected) {
        List<String> found = new ArrayList<>();
        DataRange range = DataRange.allData(Murmur3Partitioner.instance);
        try (PartitionScan scan = new PartitionScan(storedTable, table, ColumnFilter.all(table), range)) {
            while (scan.hasNext()) {
                UnfilteredRowIterator partition = scan.next();
                UnfilteredRowIterator same = read(storedTable, partition.partitionKey(), Slices.ALL, false);
                found.add(text(partition, same));
            }
        }
        List<String> wanted = new ArrayList<>();
        written.keySet().forEach(key -> wanted.add(expectedRead(expected.get(key), Slices.ALL, false)));
        assertEquals(wanted, found);
    }

    private String expectedRead(PartitionUpdate all, Slices slices, boolean reversed) {
        if (all == null) {
            return "";
        }
        ColumnFilter columns = ColumnFilter.all(table);
        return text(
                all.unfilteredIterator(columns, slices, reversed), all.unfilteredIterator(columns, slices, reversed));
    }

    private UnfilteredRowIterator read(StoredTable storedTable, DecoratedKey key, Slices slices, boolean reversed) {
        return PartitionReader.read(storedTable, table, key, slices, ColumnFilter.all(table), reversed);
    }

    /**
     * Two sources of the same as one text: merging takes out markers that say nothing, as every read of Cassandra does.
     * Nothing and no partition are the same to a reader.
     */
    private String text(UnfilteredRowIterator one, UnfilteredRowIterator other) {
        if (one == null || other == null) {
            assertEquals(one, other);
            return "";
        }
        return PartitionText.of(table, one, other);
    }

    private Slices slices(Random random) {
        switch (random.nextInt(5)) {
            case 0:
                return Slices.ALL;
            case 1:
                return Slices.NONE;
            case 2:
                Slices.Builder points = new Slices.Builder(table.comparator);
                for (int i = random.nextInt(3); i >= 0; i--) {
                    points.add(Slice.make(clustering(random)));
                }
                return points.build();
            case 3:
                Slices.Builder several = new Slices.Builder(table.comparator);
                for (int i = 0; i < 3; i++) {
                    several.add(slice(random));
                }
                return several.build();
            default:
                return Slices.with(table.comparator, slice(random));
        }
    }

    private Slice slice(Random random) {
        ByteBuffer start = Schema.text(RandomUpdates.name(random));
        ByteBuffer end = Schema.text(RandomUpdates.name(random));
        if (start.compareTo(end) > 0) {
            ByteBuffer swapped = start;
            start = end;
            end = swapped;
        }
        ClusteringBound<?> from = random.nextBoolean()
                ? BufferClusteringBound.inclusiveStartOf(start)
                : BufferClusteringBound.inclusiveStartOf(start, Int32Type.instance.decompose(RandomUpdates.number(random)));
        ClusteringBound<?> to = random.nextBoolean()
                ? BufferClusteringBound.inclusiveEndOf(end)
                : BufferClusteringBound.exclusiveEndOf(end);
        Slice slice = Slice.make(from, to);
        return slice.isEmpty(table.comparator) ? slice(random) : slice;
    }

    private Clustering<?> clustering(Random random) {
        ByteBuffer name = Schema.text(RandomUpdates.name(random));
        return Clustering.make(name, Int32Type.instance.decompose(RandomUpdates.number(random)));
    }
}
