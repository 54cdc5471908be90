package io.aiodb.cassandra.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.EndingStore;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ClusteringIndexSliceFilter;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whoever stops reading, after a page or by a failure, leaves no scan and no snapshot in the store. */
class ClosedScansTest {
    private static final List<String> NAMES = List.of("a", "b", "c");

    /** Of each name. */
    private static final int ROWS = 30;

    /** Single rows that are read one after the other, from a snapshot. */
    private static final int MANY_POINTS = 70;

    /** A snapshot, and the scan of a slice. */
    private static final int MOST_OPEN = 2;

    private final TableMetadata table = Schema.table();

    @TempDir
    Path directory;

    private Store real;
    private EndingStore store;
    private StoredTable storedTable;

    @BeforeEach
    void open() {
        real = Stores.open("aiodb", directory.resolve("store"), Map.of("segment_bytes", "1048576"));
        store = new EndingStore(real);
        StoreConfiguration configuration =
                new StoreConfiguration("aiodb", directory.resolve("store"), Durability.INTERVAL, Map.of());
        // Nobody merges, so nobody scans but the test.
        storedTable = StoredTables.attach(new OpenStore(configuration, store.seen(), request -> {}), table.id);
        PartitionUpdate.SimpleBuilder rows = PartitionUpdate.simpleBuilder(table, 1).timestamp(1);
        for (String name : NAMES) {
            for (int number = 0; number < ROWS; number++) {
                rows.row(name, number).add("v", "x");
            }
        }
        UpdateWriter.write(rows.build(), storedTable, Durability.INTERVAL);
    }

    @AfterEach
    void close() {
        real.close();
    }

    @Test
    void aReadThatStopsAnywhereHasClosedWhatItOpened() {
        stopAnywhere();
        // From here on each read needs the header of the partition, too.
        PartitionUpdate.SimpleBuilder header = PartitionUpdate.simpleBuilder(table, 1).timestamp(2);
        header.row().add("s", "static");
        header.addRangeTombstone().start("b", ROWS - 1).end("b", ROWS - 3);
        UpdateWriter.write(header.build(), storedTable, Durability.INTERVAL);
        stopAnywhere();
    }

    private void stopAnywhere() {
        for (Slices slices : List.of(names(), Slices.with(table.comparator, name("b")), Slices.ALL, points(2), points(MANY_POINTS))) {
            for (boolean reversed : new boolean[] {false, true}) {
                int all = read(slices, reversed, Integer.MAX_VALUE);
                for (int rows = 0; rows <= all; rows += 7) {
                    assertEquals(rows, read(slices, reversed, rows));
                }
            }
        }
    }

    /** Reads so many rows and markers, or those that there are; returns how many that was. */
    private int read(Slices slices, boolean reversed, int most) {
        int read = 0;
        try (UnfilteredRowIterator partition = open(slices, reversed)) {
            while (read < most && partition.hasNext()) {
                partition.next();
                read++;
                assertTrue(store.open() <= MOST_OPEN, () -> store.open() + " are open");
            }
        }
        assertNothingIsOpen();
        return read;
    }

    @Test
    void aReadThatFailsWithinASliceHasClosedWhatItOpened() {
        for (int rows = 0; rows < NAMES.size() * ROWS; rows++) {
            int[] left = {rows};
            store.endWhere(() -> left[0]-- == 0);
            try (UnfilteredRowIterator partition = open(names(), false)) {
                assertThrows(StoreException.SnapshotEnded.class, () -> partition.forEachRemaining(row -> {}));
            }
            assertNothingIsOpen();
        }
    }

    @Test
    void aQueryOfSlicesOfManyPartitionsHasClosedWhatItOpened() {
        for (int key = 2; key < 5; key++) {
            PartitionUpdate.SimpleBuilder row = PartitionUpdate.simpleBuilder(table, key).timestamp(1);
            row.row("a", 1).add("v", "x");
            row.row("b", 1).add("v", "x");
            UpdateWriter.write(row.build(), storedTable, Durability.INTERVAL);
        }
        DataRange range = new DataRange(
                DataRange.allData(table.partitioner).keyRange(), new ClusteringIndexSliceFilter(names(), false));
        int partitions = 0;
        try (PartitionScan scan = PartitionScan.ofQuery(storedTable, table, ColumnFilter.all(table), range)) {
            while (scan.hasNext()) {
                try (UnfilteredRowIterator partition = scan.next()) {
                    partition.next();
                }
                partitions++;
                assertEquals(1, store.open(), "the scan over partitions");
            }
        }
        assertEquals(4, partitions);
        assertNothingIsOpen();
    }

    private void assertNothingIsOpen() {
        assertEquals(0, store.open());
        assertEquals(0L, real.statistics().counters().get("snapshots"));
    }

    private UnfilteredRowIterator open(Slices slices, boolean reversed) {
        return PartitionReader.read(storedTable, table, Schema.key(1), slices, ColumnFilter.all(table), reversed);
    }

    /** As {@code a IN ('a', 'b', 'c')} asks for them. */
    private Slices names() {
        Slices.Builder slices = new Slices.Builder(table.comparator);
        NAMES.forEach(name -> slices.add(name(name)));
        return slices.build();
    }

    private static Slice name(String name) {
        ByteBuffer text = Schema.text(name);
        return Slice.make(BufferClusteringBound.inclusiveStartOf(text), BufferClusteringBound.inclusiveEndOf(text));
    }

    private Slices points(int count) {
        Slices.Builder slices = new Slices.Builder(table.comparator);
        for (int point = 0; point < count; point++) {
            ByteBuffer number = Int32Type.instance.decompose(point % ROWS);
            slices.add(Slice.make(Clustering.make(Schema.text(NAMES.get(point / ROWS)), number)));
        }
        return slices.build();
    }
}
