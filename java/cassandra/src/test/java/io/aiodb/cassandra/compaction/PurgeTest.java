package io.aiodb.cassandra.compaction;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.common.collect.Iterables;
import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class PurgeTest extends OneStoredTable {
    private static final long NOW_SECONDS = 1_700_000_000;
    private static final DeletionPurger OLD = (timestamp, time) -> time < NOW_SECONDS;
    private static final DeletionPurger NONE = (timestamp, time) -> false;

    @Test
    void oldTombstonesGoWithWhatTheyHide() {
        write(1, update -> update.timestamp(1).row("a", 1).add("v", "x"));
        write(1, update -> update.timestamp(1).row("b", 1).add("v", "x"));
        write(1, update -> update.timestamp(1).row("c", 1).add("v", "x"));
        write(1, update -> update.timestamp(2).nowInSec(NOW_SECONDS - 10).row("a", 1).delete());
        write(1, update -> update.timestamp(2)
                .nowInSec(NOW_SECONDS - 10)
                .addRangeTombstone()
                .start("b")
                .end("b"));
        write(2, update -> update.timestamp(1).row("a", 1).add("v", "x"));
        write(2, update -> update.timestamp(2).nowInSec(NOW_SECONDS - 10).delete());
        purge(OLD);
        assertEquals(1, entries());
    }

    @Test
    void youngTombstonesStay() {
        write(1, update -> update.timestamp(1).row("a", 1).add("v", "x"));
        write(1, update -> update.timestamp(2).nowInSec(NOW_SECONDS + 10).row("a", 1).delete());
        write(2, update -> update.timestamp(2).nowInSec(NOW_SECONDS + 10).delete());
        write(2, update -> update.timestamp(1).row("a", 1).add("v", "hidden"));
        purge(OLD);
        assertEquals(2, entries());
        write(2, update -> update.timestamp(1).row("b", 1).add("v", "late"));
        assertEquals(0, rows(2));
    }

    @Test
    void expiredCellsGo() {
        write(1, update -> update.timestamp(1).nowInSec(NOW_SECONDS - 1000).ttl(10).row("a", 1).add("v", "x"));
        write(1, update -> update.timestamp(1).nowInSec(NOW_SECONDS - 1000).ttl(2000).row("b", 1).add("v", "x"));
        purge(OLD);
        assertEquals(1, entries());
        assertEquals(1, rows(1));
    }

    @Test
    void droppedColumnsGo() {
        write(1, update -> update.timestamp(1).row("a", 1).add("v", "x"));
        TableMetadata without = table.unbuild()
                .removeRegularOrStaticColumn(table.getColumn(Schema.text("v")).name)
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        new Purge(storedTable, without, () -> NONE, NOW_SECONDS).run(() -> false);
        TableMetadata again = table.unbuild()
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        assertEquals("Row[info=[ts=1] ]: a=a, b=1 | ", first(again));
    }

    /** As they do that began before the column was added. */
    @Test
    void whoDoesNotKnowAColumnYetReadsTheOthersAndRewritesNothing() {
        TableMetadata later = table.unbuild().addRegularColumn("later", UTF8Type.instance).build();
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(later, 1).timestamp(1);
        update.row("a", 1).add("v", "x").add("later", "y");
        update.row("b", 1).delete();
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        assertEquals("Row[info=[ts=1] ]: a=a, b=1 | [v=x ts=1]", first(table));
        purge(OLD);
        assertEquals("Row[info=[ts=1] ]: a=a, b=1 | [later=y ts=1], [v=x ts=1]", first(later));
    }

    @Test
    void aPurgeThatIsStoppedLeavesWhatHidesTheRest() {
        write(1, update -> {
            for (int row = 0; row < 10; row++) {
                update.timestamp(1).row("a", row).add("v", "x");
            }
        });
        write(1, update -> update.timestamp(2).nowInSec(NOW_SECONDS - 1000).delete());
        AtomicInteger looks = new AtomicInteger();
        new Purge(storedTable, table, () -> OLD, NOW_SECONDS).run(() -> looks.incrementAndGet() > 5);
        assertEquals(0, rows(1));
        purge(OLD);
        assertEquals(0, entries());
    }

    /** The pass has not seen it, so it must leave what hides it; the next one takes both. */
    @Test
    void whatIsWrittenMeanwhileStaysHidden() {
        write(1, update -> update.timestamp(5).row("a", 1).add("v", "x"));
        write(1, update -> update.timestamp(10).nowInSec(NOW_SECONDS - 1000).delete());
        write(2, update -> update.timestamp(5).row("a", 1).add("v", "x"));
        write(2, update -> update.timestamp(10)
                .nowInSec(NOW_SECONDS - 1000)
                .addRangeTombstone()
                .start("a")
                .end("c"));
        write(3, update -> update.timestamp(10).nowInSec(NOW_SECONDS - 1000).delete());
        AtomicInteger looks = new AtomicInteger();
        new Purge(storedTable, table, () -> OLD, NOW_SECONDS).run(() -> {
            if (looks.getAndIncrement() == 0) {
                write(1, update -> update.timestamp(4).row("b", 1).add("v", "late"));
                write(2, update -> update.timestamp(10).row("b", 1).add("v", "late"));
                write(3, update -> update.timestamp(11).row("b", 1).add("v", "new"));
            }
            return false;
        });
        assertEquals(0, rows(1));
        assertEquals(0, rows(2));
        assertEquals(1, rows(3));
        assertEquals(5, entries());
        purge(OLD);
        assertEquals(1, rows(3));
        assertEquals(1, entries());
    }

    /** The commit log may have it, and not have what hides it, as the next start of the node would replay it. */
    @Test
    void whatHidesInARowStaysIfSomethingThatItHidesIsWrittenMeanwhile() {
        write(1, update -> old(update).row("a", 1).delete());
        write(2, update -> old(update).row("a", 1).add("v", null));
        write(3, update -> old(update).row("a", 1).add("m", null));
        write(4, update -> old(update).ttl(10).row("a", 1).add("v", "expired"));
        write(5, update -> old(update).row().add("s", null));
        write(6, update -> old(update).row("a", 1).delete());
        Map<Integer, Consumer<PartitionUpdate.SimpleBuilder>> hidden = Map.of(
                1, update -> update.timestamp(5).row("a", 1).add("v", "late"),
                2, update -> update.timestamp(5).row("a", 1).add("v", "late"),
                3, update -> update.timestamp(5).row("a", 1).add("m", Map.of(1, "late")),
                4, update -> update.timestamp(5).row("a", 1).add("v", "late"),
                5, update -> update.timestamp(5).row().add("s", "late"));
        AtomicInteger looks = new AtomicInteger();
        new Purge(storedTable, table, () -> OLD, NOW_SECONDS).run(() -> {
            if (looks.getAndIncrement() == 0) {
                hidden.forEach(this::write);
                write(6, update -> update.timestamp(11).row("a", 1).add("v", "new"));
            }
            return false;
        });
        // As the commit log would be replayed.
        hidden.forEach(this::write);
        for (int key = 1; key <= hidden.size(); key++) {
            assertFalse(text(key).contains("late"), text(key));
        }
        assertEquals("Row[info=[ts=11] ]: a=a, b=1 | [v=new ts=11]", text(6).strip());
    }

    /** The commit log has it behind the position up to which it will not be replayed. */
    @Test
    void whatIsWrittenWhileThatPositionIsTakenStaysHidden() {
        Consumer<PartitionUpdate.SimpleBuilder> late = update -> update.timestamp(5).row("a", 1).add("v", "late");
        write(1, update -> old(update).delete());
        write(2, update -> old(update).row("a", 1).delete());
        new Purge(
                        storedTable,
                        table,
                        () -> {
                            write(1, late);
                            write(2, late);
                            return OLD;
                        },
                        NOW_SECONDS)
                .run(() -> false);
        write(1, late);
        write(2, late);
        assertFalse(text(1).contains("late"), text(1));
        assertFalse(text(2).contains("late"), text(2));
    }

    private static PartitionUpdate.SimpleBuilder old(PartitionUpdate.SimpleBuilder update) {
        return update.timestamp(10).nowInSec(NOW_SECONDS - 1000);
    }

    /** All that is read of a partition. */
    private String text(int key) {
        StringBuilder text = new StringBuilder();
        try (UnfilteredRowIterator read = read(key)) {
            text.append(read.staticRow().isEmpty() ? "" : read.staticRow().toString(table, true));
            read.forEachRemaining(entry -> text.append(entry.toString(table, true)).append('\n'));
        }
        return text.toString();
    }

    /** Of a version of the table that has dropped a column, by a coordinator that knows a later one. */
    @Test
    void whatIsWrittenToADroppedColumnAfterThatStays() {
        TableMetadata without = table.unbuild()
                .removeRegularOrStaticColumn(table.getColumn(Schema.text("v")).name)
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        TableMetadata again = table.unbuild()
                .recordColumnDrop(table.getColumn(Schema.text("v")), 100)
                .build();
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(again, 1).timestamp(200);
        update.row("a", 1).add("v", "x");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        new Purge(storedTable, without, () -> NONE, NOW_SECONDS).run(() -> false);
        assertEquals("Row[info=[ts=200] ]: a=a, b=1 | [v=x ts=200]", first(again));
    }

    @Test
    void deletionsStayWhereARowHadToStay() {
        TableMetadata later = table.unbuild().addRegularColumn("later", UTF8Type.instance).build();
        write(1, update -> update.timestamp(1).row("a", 1).add("v", "x"));
        write(1, update -> update.timestamp(2).nowInSec(NOW_SECONDS - 1000).delete());
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(later, 1).timestamp(3);
        update.row("a", 1).add("later", "y");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        purge(OLD);
        assertEquals("Row[info=[ts=3] ]: a=a, b=1 | [later=y ts=3]", first(later));
    }

    @Test
    void manyRangeTombstonesUnderALongKeyGo() {
        TableMetadata named = TableMetadata.builder("k", "named", Schema.ID)
                .partitioner(table.partitioner)
                .addPartitionKeyColumn("p", UTF8Type.instance)
                .addClusteringColumn("c", Int32Type.instance)
                .addRegularColumn("v", UTF8Type.instance)
                .build();
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(named, "k".repeat(500));
        update.timestamp(1).nowInSec(NOW_SECONDS - 1000);
        for (int row = 0; row < 200; row++) {
            update.addRangeTombstone().start(2 * row).end(2 * row + 1);
        }
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        assertEquals(200, entries());
        new Purge(storedTable, named, () -> OLD, NOW_SECONDS).run(() -> false);
        assertEquals(0, entries());
    }

    private String first(TableMetadata version) {
        UnfilteredRowIterator read = PartitionReader.read(
                storedTable, version, Schema.key(1), Slices.ALL, ColumnFilter.all(version), false);
        try (read) {
            return read.next().toString(version, true);
        }
    }

    @Test
    void manyUpdatesBecomeOne() {
        for (int i = 1; i <= 100; i++) {
            long time = i;
            write(1, update -> update.timestamp(time).row("a", 1).add("v", "x" + time));
        }
        purge(NONE);
        try (Rows rows = storedTable.table().scan(Range.all())) {
            assertTrue(rows.next());
            assertEquals(1, FrameReader.count(rows.value()));
        }
        assertEquals(1, rows(1));
    }

    @Test
    void nothingIsLostOfWhatIsWrittenMeanwhile() throws InterruptedException {
        int writes = 3000;
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Thread writer = new Thread(() -> {
            for (int i = 0; i < writes; i++) {
                int number = i;
                write(1, update -> update.timestamp(1).row("a", number % 7).add("m", Map.of(number, "x")));
            }
        });
        writer.setUncaughtExceptionHandler((thread, thrown) -> failure.set(thrown));
        writer.start();
        while (writer.isAlive()) {
            purge(NONE);
        }
        writer.join();
        assertEquals(null, failure.get());
        int cells = 0;
        try (UnfilteredRowIterator read = read(1)) {
            while (read.hasNext()) {
                cells += Iterables.size(((Row) read.next()).cells());
            }
        }
        assertEquals(writes, cells);
    }

    private void write(int key, Consumer<PartitionUpdate.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key);
        fill.accept(update);
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private void purge(DeletionPurger purger) {
        new Purge(storedTable, table, () -> purger, NOW_SECONDS).run(() -> false);
    }

    private int entries() {
        int entries = 0;
        try (Rows rows = storedTable.table().scan(Range.all())) {
            while (rows.next()) {
                entries++;
            }
        }
        return entries;
    }

    private UnfilteredRowIterator read(int key) {
        return PartitionReader.read(
                storedTable, table, Schema.key(key), Slices.ALL, ColumnFilter.all(table), false);
    }

    private int rows(int key) {
        int rows = 0;
        UnfilteredRowIterator read = read(key);
        if (read == null) {
            return 0;
        }
        try (read) {
            while (read.hasNext()) {
                rows += read.next().isRow() ? 1 : 0;
            }
        }
        return rows;
    }
}
