package io.aiodb.cassandra.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.PartitionText;
import io.aiodb.cassandra.fixture.RandomUpdates;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.fixture.TemporaryStore;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.BiConsumer;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A row of more than stores append, written again and again and never read, stays as long as a row. */
class LargeRowsTest {
    private static final int WRITES = 40;

    /** Of a column's value: longer than an append. */
    private static final int LENGTH = BulkWriter.MAX_OPERAND_BYTES * 3 / 2;

    /** Of all that is not such a value. */
    private static final int REST = 4096;

    private final TableMetadata table = Schema.table();

    @TempDir
    Path directory;

    private TemporaryStore store;
    private StoredTable storedTable;

    @BeforeEach
    void open() {
        // The store's own thread merges nothing, as if it was behind for ever.
        store = new TemporaryStore(directory, request -> {});
        storedTable = StoredTables.attach(store.open(), table.id);
    }

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void aRowWhoseUpdatesStandForEachOtherIsOneUpdate() {
        for (int time = 1; time <= WRITES; time++) {
            write(table, time, (row, now) -> row.add("v", value(now)));
            assertEquals(1, FrameReader.count(stored(StoredKey.ROW)));
        }
    }

    @Test
    void anOlderUpdateLeavesTheRowAsItIs() {
        for (int time = WRITES; time > 0; time--) {
            write(table, time, (row, now) -> row.add("v", value(now)));
            assertEquals(1, FrameReader.count(stored(StoredKey.ROW)));
        }
    }

    /** Of which none stands for another: columns of several cells, deletions, and times that are the same. */
    @Test
    void aRowIsNoLongerThanItselfAndAnUpdateInWhateverOrderItIsWritten() {
        long seed = new Random().nextLong();
        Random random = new Random(seed);
        List<PartitionUpdate> written = new ArrayList<>();
        for (int i = 0; i < 3 * WRITES; i++) {
            PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1);
            update.timestamp(1 + random.nextInt(WRITES)).nowInSec(RandomUpdates.NOW_SECONDS);
            var row = update.row("a", 1);
            switch (random.nextInt(4)) {
                case 0 -> row.delete();
                case 1 -> row.add("m", Map.of(random.nextInt(2), value(i)));
                case 2 -> row.add("v", value(i));
                default -> row.add("v", value(i)).add("m", Map.of(random.nextInt(2), "y" + i));
            }
            update.row().add("s", value(i));
            written.add(update.build());
            UpdateWriter.write(written.get(i), storedTable, Durability.INTERVAL);
            // The column "v", two cells of "m", and the update, which has at most one of them.
            assertLength(4 * LENGTH, StoredKey.ROW, seed);
            assertLength(2 * LENGTH, StoredKey.STATIC, seed);
        }
        PartitionUpdate expected = PartitionUpdate.merge(written);
        ColumnFilter columns = ColumnFilter.all(table);
        assertEquals(
                PartitionText.of(
                        table,
                        expected.unfilteredIterator(columns, Slices.ALL, false),
                        expected.unfilteredIterator(columns, Slices.ALL, false)),
                PartitionText.of(table, read(), read()),
                "with the seed " + seed);
    }

    private void assertLength(int most, byte kind, long seed) {
        int length = stored(kind).remaining();
        assertTrue(length <= most + REST, () -> length + " bytes are stored, with the seed " + seed);
    }

    /** One that was refused half-way is written again from its beginning, as often as it takes. */
    @Test
    void anUpdateThatIsTriedAgainAndAgainMakesItsRowsNoLonger() {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1).timestamp(2);
        update.row("a", 1).add("m", Map.of(1, value(1)));
        update.row("b", 1).add("m", Map.of(1, value(1)));
        PartitionUpdate both = update.build();
        // Its first row.
        store.refuseBatchesAfter(1);
        assertThrows(StoreException.Full.class, () -> UpdateWriter.write(both, storedTable, Durability.INTERVAL));
        int length = stored(StoredKey.ROW).remaining();
        assertTrue(length > LENGTH, "the first row is there");
        for (int tries = 0; tries < 5; tries++) {
            store.refuseBatchesAfter(1);
            assertThrows(StoreException.Full.class, () -> LargeUpdate.finish(storedTable));
            assertEquals(length, stored(StoredKey.ROW).remaining());
        }
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        LargeUpdate.finish(storedTable);
        assertEquals(length, stored(StoredKey.ROW).remaining());
        try (UnfilteredRowIterator rows = read()) {
            rows.next();
            rows.next();
        }
    }

    /** A coordinator that does not know a column yet must not remove it. */
    @Test
    void columnsThatAWriterDoesNotKnowStay() {
        write(table, 1, (row, now) -> row.add("m", Map.of(1, "kept")));
        for (int time = 2; time < 6; time++) {
            write(Schema.withoutMap(), time, (row, now) -> row.add("v", value(now)));
        }
        try (UnfilteredRowIterator rows = read()) {
            String row = rows.next().toString(table, true);
            assertTrue(row.contains("kept"), row);
            assertTrue(row.contains(value(5)), "the last value");
        }
    }

    private void write(TableMetadata version, int time, BiConsumer<Row.SimpleBuilder, Integer> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(version, 1).timestamp(time);
        fill.accept(update.row("a", 1), time);
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private static String value(int number) {
        return String.format("%09d", number).repeat(LENGTH / 9);
    }

    /** What is stored of the partition's static row, or of its first row. */
    private ByteBuffer stored(byte kind) {
        StoredKey key = new StoredKey().partition(Schema.key(1));
        Clustering<?> first = Clustering.make(Schema.text("a"), Int32Type.instance.decompose(1));
        byte[] place = kind == StoredKey.STATIC
                ? key.entry(kind).copy()
                : key.entry(kind, table.comparator.asByteComparable(first)).copy();
        return ByteBuffer.wrap(storedTable.table().get(place));
    }

    private UnfilteredRowIterator read() {
        return PartitionReader.read(storedTable, table, Schema.key(1), Slices.ALL, ColumnFilter.all(table), false);
    }
}
