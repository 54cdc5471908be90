package io.aiodb.cassandra.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.compaction.Purge;
import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.format.FrameWriter;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.junit.jupiter.api.Test;

class LargeUpdateTest extends OneStoredTable {
    @Test
    void aValueMayBeAsLargeAsCassandraAllows() {
        String large = "v".repeat(6_000_000);
        for (int i = 0; i < 3; i++) {
            write(1, i, large + i);
        }
        assertEquals(large + 2, value(read(1)));
        restart();
        assertEquals(large + 2, value(read(1)));
        new Purge(storedTable, table, () -> (timestamp, time) -> false, 0).run(() -> false);
        assertEquals(large + 2, value(read(1)));
    }

    @Test
    void readersSeeAnUpdateOfManyRowsWholeOrNotAtAll() throws InterruptedException {
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread writer = new Thread(() -> {
            for (int time = 1; time <= 6; time++) {
                writeRows(time, 40, "v".repeat(60_000));
            }
        });
        writer.setUncaughtExceptionHandler((thread, thrown) -> failure.set(thrown));
        writer.start();
        while (writer.isAlive()) {
            long time = -1;
            int rows = 0;
            UnfilteredRowIterator read = read(1);
            if (read == null) {
                continue;
            }
            try (read) {
                while (read.hasNext()) {
                    long next = ((Row) read.next()).primaryKeyLivenessInfo().timestamp();
                    assertTrue(time < 0 || time == next, "half an update");
                    time = next;
                    rows++;
                }
            }
            assertEquals(40, rows);
        }
        writer.join();
        assertNull(failure.get());
    }

    @Test
    void whatWasKeptAndNotWrittenIsWrittenAfterARestart() {
        write(2, 1, "x");
        byte[] row = new StoredKey().partition(Schema.key(1)).entry(StoredKey.DELETION).copy();
        ByteBuffer operand = new FrameWriter().deletion(DeletionTime.build(0, 0));
        ByteBuffer kept = ByteBuffer.allocate(2 * Integer.BYTES + row.length + operand.remaining());
        kept.putInt(row.length).put(row).putInt(operand.remaining()).put(operand);
        store.open().catalog().keepUpdate(table.id, storedTable.number(), kept.array(), Durability.INTERVAL);
        assertFalse(PartitionReader.exists(storedTable, Schema.key(1)));
        restart();
        assertTrue(PartitionReader.exists(storedTable, Schema.key(1)));
        assertTrue(store.open().catalog().keptUpdates(table.id, storedTable.number()).isEmpty());
    }

    @Test
    void whatThereWasNoRoomForIsThereOnceThereIs() {
        store.refuseBatchesAfter(2);
        assertThrows(StoreException.Full.class, () -> writeRows(5, 40, "v".repeat(60_000)));
        assertThrows(StoreException.Full.class, () -> LargeUpdate.finish(storedTable));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        LargeUpdate.finish(storedTable);
        assertEquals(40, rows());
        assertTrue(store.open().catalog().keptUpdates(table.id, storedTable.number()).isEmpty());
        assertTrue(storedTable.unfinished().all().isEmpty());
    }

    @Test
    void whatHidesAnUpdateStaysUntilThatIsWhole() {
        PartitionUpdate.SimpleBuilder deletion = PartitionUpdate.simpleBuilder(table, 1);
        UpdateWriter.write(deletion.timestamp(10).delete().build(), storedTable, Durability.INTERVAL);
        store.refuseBatchesAfter(2);
        assertThrows(StoreException.Full.class, () -> writeRows(5, 40, "v".repeat(60_000)));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        Purge purge = new Purge(storedTable, table, () -> (timestamp, time) -> true, 0);
        purge.run(() -> false);
        LargeUpdate.finish(storedTable);
        assertEquals(0, rows());
        purge = new Purge(storedTable, table, () -> (timestamp, time) -> true, 0);
        purge.run(() -> false);
        assertFalse(PartitionReader.exists(storedTable, Schema.key(1)));
    }

    /** The pass has been where the update goes on, so it must not take what hides that. */
    @Test
    void whatHidesAnUpdateThatIsMadeWholeDuringAPurgeStays() {
        PartitionUpdate.SimpleBuilder deletion = PartitionUpdate.simpleBuilder(table, 1);
        UpdateWriter.write(deletion.timestamp(10).delete().build(), storedTable, Durability.INTERVAL);
        deletion = PartitionUpdate.simpleBuilder(table, 2).timestamp(10);
        deletion.addRangeTombstone().start("a").end("b");
        UpdateWriter.write(deletion.build(), storedTable, Durability.INTERVAL);
        store.refuseBatchesAfter(0);
        assertThrows(StoreException.Full.class, () -> writeRows(5, 40, "v".repeat(60_000)));
        assertThrows(StoreException.Full.class, () -> writeRows(2, 5, 40, "v".repeat(60_000)));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        new Purge(storedTable, table, () -> (timestamp, time) -> true, 0).run(() -> {
            LargeUpdate.finish(storedTable);
            return false;
        });
        assertTrue(storedTable.unfinished().all().isEmpty());
        assertEquals(0, rows(1));
        assertEquals(0, rows(2));
    }

    @Test
    void aStoreThatIsFullWhenTheNodeStartsFinishesTheUpdateLater() {
        writeInPart(1);
        restart();
        assertEquals(1, storedTable.unfinished().all().size());
        assertTrue(storedTable.unfinished().isIn(PartitionLocks.of(Schema.key(1))));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        LargeUpdate.finish(storedTable);
        assertEquals(40, rows());
        assertTrue(storedTable.unfinished().all().isEmpty());
        assertTrue(kept().isEmpty());
    }

    @Test
    void whatWasKeptBeforeARestartStaysBesideWhatIsKeptSince() {
        writeInPart(1);
        restart();
        writeInPart(2);
        assertEquals(2, kept().size());
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        LargeUpdate.finish(storedTable);
        assertEquals(40, rows(1));
        assertEquals(40, rows(2));
    }

    @Test
    void whatMayBeMissingOfAnUpdateIsReadByItself() {
        write(2, 1, "x");
        writeInPart(1);
        List<Integer> found = new ArrayList<>();
        LargeUpdate.forEachUnfinished(storedTable, rest -> {
            try (PartitionScan partitions = PartitionScan.of(rest, table, null, null)) {
                while (partitions.hasNext()) {
                    try (UnfilteredRowIterator read = partitions.next()) {
                        assertEquals(Schema.key(1), read.partitionKey());
                        found.add(rows(read));
                    }
                }
            }
        });
        assertEquals(List.of(40), found);
    }

    /** Cassandra asks whether a deletion in an SSTable hides anything of the partition elsewhere. */
    @Test
    void aPartitionOfWhichNothingButAnUnfinishedUpdateIsThereExists() {
        write(2, 1, "x");
        store.refuseBatchesAfter(0);
        assertThrows(StoreException.Full.class, () -> writeRows(5, 40, "v".repeat(60_000)));
        assertTrue(PartitionReader.exists(storedTable, Schema.key(1)));
    }

    private int rows() {
        return rows(1);
    }

    private int rows(int key) {
        try (UnfilteredRowIterator read = read(key)) {
            return rows(read);
        }
    }

    private static int rows(UnfilteredRowIterator read) {
        int rows = 0;
        while (read.hasNext()) {
            rows += read.next().isRow() ? 1 : 0;
        }
        return rows;
    }

    private List<byte[]> kept() {
        return store.open().catalog().keptUpdates(table.id, storedTable.number());
    }

    /** Writes an update of many rows of a partition, of which the store has room for some. Then it is full. */
    private void writeInPart(int key) {
        store.refuseBatchesAfter(2);
        assertThrows(StoreException.Full.class, () -> writeRows(key, 5, 40, "v".repeat(60_000)));
        store.refuseBatchesAfter(0);
    }

    private void write(int key, long time, String value) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key);
        update.timestamp(time).row("a", 1).add("v", value);
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private void writeRows(long time, int rows, String value) {
        writeRows(1, time, rows, value);
    }

    private void writeRows(int key, long time, int rows, String value) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key);
        update.timestamp(time);
        for (int i = 0; i < rows; i++) {
            update.row("a", i).add("v", value);
        }
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private UnfilteredRowIterator read(int key) {
        return PartitionReader.read(
                storedTable, table, Schema.key(key), Slices.ALL, ColumnFilter.all(table), false);
    }

    private String value(UnfilteredRowIterator read) {
        assertNotNull(read);
        try (read) {
            Row row = (Row) read.next();
            return Schema.string(row.getCell(table.getColumn(Schema.text("v"))).buffer());
        }
    }
}
