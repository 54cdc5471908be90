package io.aiodb.cassandra.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.compaction.Purge;
import io.aiodb.cassandra.compaction.UpdateMerger;
import io.aiodb.cassandra.fixture.EndingStore;
import io.aiodb.cassandra.fixture.PartitionText;
import io.aiodb.cassandra.fixture.RandomUpdates;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores end scans that take long; a caller that needs all rows of a partition gets them nevertheless. */
class EndedScansTest {
    private static final long SEED = 0xE4DED;
    private static final int ROUNDS = 100;
    private static final int UPDATES = 100;
    private static final int TIMESTAMPS = 20;

    private static final int OVERWRITTEN = 270_000;
    private static final int KIBIBYTE = 1024;
    private static final long NOW_SECONDS = 1_700_000_000;

    private TableMetadata table = Schema.table();

    @TempDir
    Path directory;

    private Store real;
    private EndingStore ending;
    private StoredTable storedTable;

    @BeforeEach
    void open() {
        real = Stores.open("aiodb", directory.resolve("store"), Map.of("segment_bytes", "1048576", "index", "lmdb"));
        ending = new EndingStore(real);
        attach(ending.seen());
    }

    private void attach(Store store) {
        StoreConfiguration configuration =
                new StoreConfiguration("aiodb", directory.resolve("store"), Durability.INTERVAL, Map.of());
        storedTable = StoredTables.attach(new OpenStore(configuration, store, UpdateMerger::merge), table.id);
    }

    @AfterEach
    void close() {
        real.close();
    }

    private void write(PartitionUpdate update) {
        UpdateWriter.write(update, storedTable, Durability.INTERVAL);
    }

    private void writeRows(int key, int rows, String value) {
        for (int row = 0; row < rows; row++) {
            PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key).timestamp(1);
            update.row("a", row).add("v", value);
            write(update.build());
        }
    }

    private PartitionScan scan() {
        return new PartitionScan(storedTable, table, ColumnFilter.all(table), allData());
    }

    private static DataRange allData() {
        return DataRange.allData(Murmur3Partitioner.instance);
    }

    private static int count(PartitionScan scan) {
        int rows = 0;
        while (scan.hasNext()) {
            try (UnfilteredRowIterator partition = scan.next()) {
                while (partition.hasNext()) {
                    partition.next();
                    rows++;
                }
            }
        }
        return rows;
    }

    /** With the engine itself, for which 262,144 overwritten records were once too many: it does not end the scan. */
    @Test
    void aPartitionIsReadToItsEndInOneScanWhileMuchIsOverwritten() {
        attach(real);
        writeRows(1, 500, "x".repeat(KIBIBYTE));
        Table other = real.createTable("other");
        overwrite(other, 1);
        try (PartitionScan scan = scan();
                UnfilteredRowIterator partition = scan.next()) {
            assertEquals("b=499", lastColumn(partition.next()));
            overwrite(other, 2);
            assertEquals(1L, real.statistics().counters().get("snapshots"), "the scan");
            for (int row = 498; row >= 0; row--) {
                assertEquals("b=" + row, lastColumn(partition.next()));
            }
        }
    }

    private String lastColumn(Unfiltered row) {
        String clustering = row.clustering().toString(table);
        return clustering.substring(clustering.indexOf("b="));
    }

    private void overwrite(Table other, int value) {
        Batch batch = new Batch();
        ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES).putInt(0, value);
        for (int record = 0; record < OVERWRITTEN; record++) {
            batch.put(other, ByteBuffer.allocate(Integer.BYTES).putInt(0, record), bytes);
            if (batch.size() == 4096 || record == OVERWRITTEN - 1) {
                real.write(batch, Durability.NONE);
                batch.clear();
            }
        }
    }

    /**
     * Whatever is written, deleted and purged while a scan is ended again and again: what it gives has all that was there
     * when it began, and nothing that was not written.
     */
    @Test
    void nothingIsMissingAndNothingComesBack() {
        Random seeds = new Random(SEED);
        for (int round = 0; round < ROUNDS; round++) {
            long seed = seeds.nextLong();
            TableMetadata columns = round % 2 == 0 ? Schema.table() : Schema.withoutMap();
            table = columns.unbuild().id(TableId.generate()).build();
            storedTable = StoredTables.attach(storedTable.open(), table.id);
            try {
                round(new Random(seed));
            } catch (AssertionError failure) {
                throw new AssertionError("with the seed " + seed, failure);
            }
        }
    }

    private void round(Random random) {
        Map<DecoratedKey, List<PartitionUpdate>> before = new HashMap<>();
        Map<DecoratedKey, List<PartitionUpdate>> all = new HashMap<>();
        for (int i = 0; i < UPDATES; i++) {
            write(random, 0, List.of(before, all));
        }
        ending.endWhere(() -> isEnding(random, all));
        Map<DecoratedKey, PartitionUpdate> found = readAll();
        ending.endWhere(() -> false);
        assertBetween(before, found, all);
        ending.endWhere(() -> random.nextInt(3) == 0);
        new Purge(storedTable, table, () -> (timestamp, time) -> false, NOW_SECONDS).run(() -> false);
        ending.endWhere(() -> false);
        assertEveryEntryIsOfOneUpdate();
        assertBetween(all, readAll(), all);
    }

    private boolean isEnding(Random random, Map<DecoratedKey, List<PartitionUpdate>> all) {
        // The header of a partition is read within one scan, or not at all.
        if (random.nextInt(12) > 0) {
            return false;
        }
        for (int i = random.nextInt(8); i > 0; i--) {
            // Most of what deletes comes later than what it deletes.
            write(random, TIMESTAMPS / 2, List.of(all));
        }
        if (random.nextInt(3) == 0) {
            new Purge(storedTable, table, () -> (timestamp, time) -> false, NOW_SECONDS).run(() -> false);
        }
        return true;
    }

    private void write(Random random, int since, List<Map<DecoratedKey, List<PartitionUpdate>>> written) {
        int timestamp = since + 1 + random.nextInt(TIMESTAMPS);
        PartitionUpdate update =
                random.nextInt(4) == 0
                        ? rangeTombstone(random, timestamp)
                        : RandomUpdates.update(table, random, 6, timestamp);
        write(update);
        written.forEach(
                map -> map.computeIfAbsent(update.partitionKey(), key -> new ArrayList<>()).add(update));
    }

    /** One that may begin and end at a row. */
    private PartitionUpdate rangeTombstone(Random random, int timestamp) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, random.nextInt(3));
        update.timestamp(timestamp).nowInSec(NOW_SECONDS + timestamp % 3);
        String name = "n" + random.nextInt(4);
        int greater = random.nextInt(3);
        // The second column is in descending order.
        PartitionUpdate.SimpleBuilder.RangeTombstoneBuilder range = update.addRangeTombstone();
        range = random.nextBoolean() ? range.start(name, greater) : range.start(name);
        range = range.end(name, random.nextInt(greater + 1));
        return update.build();
    }

    private Map<DecoratedKey, PartitionUpdate> readAll() {
        Map<DecoratedKey, PartitionUpdate> found = new HashMap<>();
        try (PartitionScan scan = scan()) {
            while (scan.hasNext()) {
                try (UnfilteredRowIterator partition = checked(scan.next())) {
                    PartitionUpdate read = PartitionUpdate.fromIterator(partition, ColumnFilter.all(table));
                    assertEquals(null, found.put(read.partitionKey(), read));
                }
            }
        }
        return found;
    }

    /** Rows and markers in their order, each range tombstone with its end. */
    private UnfilteredRowIterator checked(UnfilteredRowIterator partition) {
        return new AbstractUnfilteredRowIterator(
                table,
                partition.partitionKey(),
                partition.partitionLevelDeletion(),
                partition.columns(),
                partition.staticRow(),
                false,
                partition.stats()) {
            private Unfiltered before;
            private DeletionTime open;

            @Override
            protected Unfiltered computeNext() {
                if (!partition.hasNext()) {
                    assertEquals(null, open);
                    return endOfData();
                }
                Unfiltered next = partition.next();
                assertTrue(
                        before == null || table.comparator.compare(before, next) < 0,
                        () -> before.toString(table) + " before " + next.toString(table));
                if (next instanceof RangeTombstoneMarker marker) {
                    assertEquals(open, marker.isClose(false) ? marker.closeDeletionTime(false) : null);
                    open = marker.isOpen(false) ? marker.openDeletionTime(false) : null;
                }
                before = next;
                return next;
            }

            @Override
            public void close() {
                partition.close();
            }
        };
    }

    private void assertBetween(
            Map<DecoratedKey, List<PartitionUpdate>> before,
            Map<DecoratedKey, PartitionUpdate> found,
            Map<DecoratedKey, List<PartitionUpdate>> all) {
        Set<DecoratedKey> keys = new HashSet<>(all.keySet());
        keys.addAll(found.keySet());
        for (DecoratedKey key : keys) {
            List<PartitionUpdate> read = found.containsKey(key) ? List.of(found.get(key)) : List.of();
            List<PartitionUpdate> least = before.getOrDefault(key, List.of());
            assertEquals(text(read, List.of()), text(least, read), "what was there when it began is there, or what has deleted it");
            assertEquals(text(all.get(key), List.of()), text(all.get(key), read), "nothing is there that was not written");
        }
    }

    private String text(List<PartitionUpdate> some, List<PartitionUpdate> others) {
        List<PartitionUpdate> together = new ArrayList<>(some);
        together.addAll(others);
        if (together.isEmpty()) {
            return "";
        }
        PartitionUpdate merged = PartitionUpdate.merge(together);
        ColumnFilter columns = ColumnFilter.all(table);
        return PartitionText.of(
                table,
                merged.unfilteredIterator(columns, Slices.ALL, false),
                merged.unfilteredIterator(columns, Slices.ALL, false));
    }

    /** At least one row comes out of each scan, so it has an end. */
    @Test
    void aScanThatIsEndedAfterEachRowComesToItsEnd() {
        writeRows(1, 20, "x");
        writeRows(2, 20, "x");
        int[] asked = new int[1];
        ending.endWhere(() -> asked[0]++ % 2 == 1);
        try (PartitionScan scan = scan()) {
            assertEquals(40, count(scan));
        }
    }

    @Test
    void aScanThatIsAlwaysEndedFails() {
        writeRows(1, 20, "x");
        int[] asked = new int[1];
        ending.endWhere(() -> asked[0]++ > 5);
        try (PartitionScan scan = scan()) {
            assertThrows(StoreException.SnapshotEnded.class, () -> count(scan));
        }
        assertTrue(asked[0] < 1000, asked[0] + " scans");
    }

    /** A query sees each update of a partition whole or not at all. */
    @Test
    void aQueryFailsWithinAPartitionAndGoesOnBetweenPartitions() {
        for (int key = 1; key <= 5; key++) {
            writeRows(key, 1, "x");
        }
        int[] asked = new int[1];
        ending.endWhere(() -> asked[0]++ % 3 == 2);
        try (PartitionScan scan = query()) {
            assertThrows(StoreException.SnapshotEnded.class, () -> count(scan));
        }
        asked[0] = 0;
        try (PartitionScan scan = query()) {
            int partitions = 0;
            while (scan.hasNext()) {
                scan.next().close();
                partitions++;
            }
            assertEquals(5, partitions);
        }
    }

    private PartitionScan query() {
        return PartitionScan.ofQuery(storedTable, table, ColumnFilter.all(table), allData());
    }

    private void assertEveryEntryIsOfOneUpdate() {
        try (Rows rows = storedTable.tableOrNull().scan(Range.all())) {
            while (rows.next()) {
                assertEquals(1, FrameReader.count(rows.value()));
            }
        }
    }
}
