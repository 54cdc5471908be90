package io.aiodb.cassandra.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

/** Rows that take the place of stored ones, and rows that must not. */
class UpdateWriterTest extends OneStoredTable {
    /** How far ahead of what was written the bound lies that a restart knows. */
    private static final long AHEAD_MICROS = 10_000_000;

    /** So many values of this length are enough for a purge, and not one that is only appended because it is long. */
    private static final int WRITES = 3000;

    private static final String LONG = "x".repeat(25_000);

    UpdateWriterTest() {
        super(Schema.flat().build());
    }

    @Test
    void aWholeRowThatIsNewerTakesThePlaceOfWhatThereWas() {
        writeBoth(1, "first");
        write(2, row -> row.noPrimaryKeyLivenessInfo().add("v", "second"));
        assertEquals(2, frames());
        writeBoth(3, "third");
        assertEquals(1, frames());
        assertEquals("third third", read());
    }

    @Test
    void aRowThatIsNotNewerThanAllThereIsIsMerged() {
        writeBoth(5, "first");
        write(7, row -> row.noPrimaryKeyLivenessInfo().add("v", "late"));
        writeBoth(6, "between");
        assertEquals("late between", read());
        writeBoth(7, "later by its value");
        assertEquals("later by its value later by its value", read());
        writeBoth(7, "a");
        assertEquals("later by its value later by its value", read());
    }

    @Test
    void aColumnThatIsNotSetIsKept() {
        writeBoth(1, "first");
        write(2, row -> row.add("v", "second"));
        assertEquals("second first", read());
    }

    @Test
    void aRowThatWasDeletedIsMerged() {
        writeBoth(1, "first");
        write(2, Row.SimpleBuilder::delete);
        writeBoth(3, "third");
        assertEquals("third third", read());
        assertEquals(2, onlyRow().deletion().time().markedForDeleteAt());
    }

    @Test
    void aRestartKnowsABoundOfWhatIsStored() {
        writeBoth(1, "first");
        write(100, row -> row.noPrimaryKeyLivenessInfo().add("v", "late"));
        restart();
        writeBoth(50, "between");
        assertEquals("late between", read());
        writeBoth(101 + AHEAD_MICROS, "last");
        assertEquals(1, frames());
        assertEquals("last last", read());
    }

    /** A purge reads everything, so it must be worth it. */
    @Test
    void onlyWhereSomethingMayBeRemovedIsAPurgeDue() {
        appendedBefore();
        long timestamp = writeLong(1, row -> row.add("v", LONG).add("w", LONG));
        assertEquals(1, frames());
        assertFalse(isPurgeDue());
        timestamp = writeLong(timestamp, row -> row.add("v", LONG));
        assertTrue(isPurgeDue());
        appendedBefore();
        timestamp = writeLong(timestamp, row -> row.add("v", LONG).add("w", LONG));
        assertFalse(isPurgeDue());
        // However little it takes itself, it may hide all of that.
        PartitionUpdate.SimpleBuilder deletion = PartitionUpdate.simpleBuilder(table, Schema.key(2));
        UpdateWriter.write(deletion.timestamp(timestamp).delete().build(), storedTable, Durability.INTERVAL);
        assertTrue(isPurgeDue());
        assertFalse(isPurgeDue());
    }

    /** As if so much had been appended that a purge is nearly due. */
    private void appendedBefore() {
        storedTable.purgeSchedule().wrote(200L << 20, false, false);
    }

    /** Writes what a purge then still takes to be due; returns a later timestamp than any of it. */
    private long writeLong(long timestamp, Consumer<Row.SimpleBuilder> fill) {
        for (int i = 0; i < WRITES; i++) {
            write(timestamp + i, fill);
        }
        return timestamp + WRITES;
    }

    private boolean isPurgeDue() {
        boolean due = storedTable.purgeSchedule().begin(storedTable.stats(), 0, () -> 0);
        if (due) {
            storedTable.purgeSchedule().end(0);
        }
        return due;
    }

    /**
     * Columns that have no bit in a cover must not be taken for set: with 64 of them a row's own timestamp alone would do.
     */
    @Test
    void aRowOfMoreColumnsThanACoverHasIsMerged() {
        for (int columns : new int[] {61, 62, 63, 64, 65, 127, 128}) {
            TableMetadata.Builder builder = Schema.flat();
            for (int column = 2; column < columns; column++) {
                builder.addRegularColumn("x" + column, UTF8Type.instance);
            }
            TableMetadata wide = builder.build();
            int partition = columns;
            PartitionUpdate.SimpleBuilder first = PartitionUpdate.simpleBuilder(wide, partition);
            Row.SimpleBuilder whole = first.timestamp(1).row("a").add("v", "first").add("w", "first");
            for (int column = 2; column < columns; column++) {
                whole.add("x" + column, "first");
            }
            PartitionUpdate.SimpleBuilder second = PartitionUpdate.simpleBuilder(wide, partition);
            second.timestamp(2).row("a").add("v", "second");
            PartitionUpdate.SimpleBuilder third = PartitionUpdate.simpleBuilder(wide, partition);
            third.timestamp(3).row("a");
            for (PartitionUpdate.SimpleBuilder update : List.of(first, second, third)) {
                UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
            }
            try (UnfilteredRowIterator rows = PartitionReader.read(
                    storedTable, wide, Schema.key(partition), Slices.ALL, ColumnFilter.all(wide), false)) {
                Row row = (Row) rows.next();
                assertEquals(columns, row.columnCount());
                assertEquals("second", Schema.string(row.getCell(wide.getColumn(Schema.text("v"))).buffer()));
                assertEquals("first", Schema.string(row.getCell(wide.getColumn(Schema.text("w"))).buffer()));
            }
        }
    }

    /** A writer that does not know a new column yet must not remove it. */
    @Test
    void whoDoesNotKnowAColumnMerges() {
        writeBoth(1, "first");
        TableMetadata wider = Schema.flat().addRegularColumn("x", UTF8Type.instance).build();
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(wider, Schema.key(1));
        update.timestamp(2).row("a").noPrimaryKeyLivenessInfo().add("x", "new");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        writeBoth(3, "third");
        try (UnfilteredRowIterator rows = PartitionReader.read(
                storedTable, wider, Schema.key(1), Slices.ALL, ColumnFilter.all(wider), false)) {
            Row row = (Row) rows.next();
            assertEquals("new", Schema.string(row.getCell(wider.getColumn(Schema.text("x"))).buffer()));
            assertEquals("third", Schema.string(row.getCell(wider.getColumn(Schema.text("v"))).buffer()));
        }
    }

    @Test
    void ofManyWritersTheLatestTimestampWins() throws InterruptedException {
        AtomicLong time = new AtomicLong();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Thread> writers = new ArrayList<>();
        for (int writer = 0; writer < 4; writer++) {
            writers.add(new Thread(() -> {
                for (int i = 0; i < 5000; i++) {
                    long now = time.incrementAndGet();
                    if (now % 3 == 0) {
                        write(now, row -> row.noPrimaryKeyLivenessInfo().add("v", String.valueOf(now)));
                    } else {
                        writeBoth(now, String.valueOf(now));
                    }
                }
            }));
        }
        writers.forEach(writer -> writer.setUncaughtExceptionHandler((thread, thrown) -> failure.set(thrown)));
        writers.forEach(Thread::start);
        for (Thread writer : writers) {
            writer.join();
        }
        assertNull(failure.get());
        // The last one that sets both is at most two before the last.
        long last = time.get();
        long whole = last % 3 == 0 ? last - 1 : last;
        assertEquals(last + " " + whole, read());
    }

    private void writeBoth(long time, String text) {
        write(time, row -> row.add("v", text).add("w", text));
    }

    private void write(long time, Consumer<Row.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, Schema.key(1));
        fill.accept(update.timestamp(time).row("a"));
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private Row onlyRow() {
        try (UnfilteredRowIterator rows = PartitionReader.read(
                storedTable, table, Schema.key(1), Slices.ALL, ColumnFilter.all(table), false)) {
            return (Row) rows.next();
        }
    }

    private String read() {
        Row row = onlyRow();
        return text(row, "v") + " " + text(row, "w");
    }

    private String text(Row row, String column) {
        return Schema.string(row.getCell(table.getColumn(Schema.text(column))).buffer());
    }

    private int frames() {
        try (Rows rows = storedTable.table().scan(Range.all())) {
            rows.next();
            return FrameReader.count(rows.value());
        }
    }

    /** As its coordinator may not have known yet that the column was dropped, or know that it was added again. */
    @Test
    void aColumnThatWasDroppedIsWrittenToAllTheSame() {
        TableMetadata without = table.unbuild()
                .removeRegularOrStaticColumn(table.getColumn(Schema.text("v")).name)
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        TableMetadata again = table.unbuild()
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        PartitionUpdate.SimpleBuilder sent = PartitionUpdate.simpleBuilder(table, 1).timestamp(200);
        sent.row("a").add("v", "x").add("w", "y");
        PartitionUpdate full = sent.build();
        PartitionUpdate.Builder arrived =
                new PartitionUpdate.Builder(without, full.partitionKey(), full.columns(), full.rowCount());
        full.forEach(arrived::add);
        UpdateWriter.write(arrived.build(), storedTable, Durability.INTERVAL);
        assertEquals("Row[info=[ts=200] ]: a=a | [w=y ts=200]", only(without));
        assertEquals("Row[info=[ts=200] ]: a=a | [v=x ts=200], [w=y ts=200]", only(again));
    }

    /** A coordinator that takes it for dropped must not put its row in the place of one that has it. */
    @Test
    void whoDoesNotKnowThatAColumnWasAddedAgainMerges() {
        TableMetadata without = table.unbuild()
                .removeRegularOrStaticColumn(table.getColumn(Schema.text("v")).name)
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        TableMetadata again = table.unbuild()
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        writeBoth(1, "before");
        PartitionUpdate.SimpleBuilder both = PartitionUpdate.simpleBuilder(again, Schema.key(1)).timestamp(200);
        both.row("a").add("v", "x").add("w", "y");
        UpdateWriter.write(both.build(), storedTable, Durability.INTERVAL);
        PartitionUpdate.SimpleBuilder one = PartitionUpdate.simpleBuilder(without, Schema.key(1)).timestamp(201);
        one.row("a").add("w", "z");
        UpdateWriter.write(one.build(), storedTable, Durability.INTERVAL);
        assertEquals("Row[info=[ts=201] ]: a=a | [v=x ts=200], [w=z ts=201]", only(again));
    }

    private String only(TableMetadata version) {
        UnfilteredRowIterator read = PartitionReader.read(
                storedTable, version, Schema.key(1), Slices.ALL, ColumnFilter.all(version), false);
        try (read) {
            return read.next().toString(version, true);
        }
    }
}
