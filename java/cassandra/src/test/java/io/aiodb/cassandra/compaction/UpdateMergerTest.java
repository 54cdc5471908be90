package io.aiodb.cassandra.compaction;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.spi.ILoggingEvent;
import io.aiodb.cassandra.fixture.LogOf;
import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.fixture.TemporaryStore;
import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class UpdateMergerTest extends OneStoredTable {
    private static final int UPDATES = 6000;

    /** So many are left with a chance of one in millions, since each could be the one that is looked at. */
    private static final int FEW = 16 * MergeQueue.UPDATES_PER_REQUEST;

    private static final int WAIT_SECONDS = 120;

    @Test
    void aRangeDeletedOftenIsShortBeforeAnybodyReadsIt() throws InterruptedException {
        for (int time = 1; time <= UPDATES; time++) {
            deleteRange(time, "a", "b");
        }
        await(() -> updates(StoredKey.RANGE_TOMBSTONE) < FEW);
        readUntil(MergeQueue.MAX_UPDATES);
    }

    @Test
    void aRowWrittenOftenIsShortBeforeAnybodyReadsIt() throws InterruptedException {
        for (int i = 1; i <= UPDATES; i++) {
            int time = i;
            // With a column of several cells no update stands for those before it.
            write(update -> update.timestamp(time).row("a", 1).add("v", "x" + time).add("m", Map.of(time % 3, "y")));
        }
        await(() -> updates(StoredKey.ROW) < FEW);
        readUntil(MergeQueue.MAX_UPDATES);
        try (UnfilteredRowIterator read = read()) {
            Row row = (Row) read.next();
            assertEquals("x" + UPDATES, Schema.string(row.getCell(table.getColumn(Schema.text("v"))).buffer()));
        }
    }

    @Test
    void theHeaderOfAPartitionIsMergedOnceItIsRead() throws InterruptedException {
        int several = 10 * MergeQueue.MAX_UPDATES;
        for (int i = 1; i <= several; i++) {
            int time = i;
            write(update -> update.timestamp(time).nowInSec(time).delete());
            write(update -> update.timestamp(time).row().add("s", "x" + time));
        }
        readUntil(MergeQueue.MAX_UPDATES);
        try (UnfilteredRowIterator read = read()) {
            assertEquals(several, read.partitionLevelDeletion().markedForDeleteAt());
            assertEquals(several, read.partitionLevelDeletion().localDeletionTime());
        }
    }

    @Test
    void overlappingRangesHideTheSameRowsMergedOrNot() throws InterruptedException {
        long seed = new Random().nextLong();
        Random random = new Random(seed);
        int names = 300;
        int[] written = new int[names];
        int[] deleted = new int[names];
        for (int name = 0; name < names; name++) {
            int number = name;
            written[name] = 1 + random.nextInt(1000);
            write(update -> update.timestamp(written[number]).row(name(number), 1).add("v", "x"));
        }
        for (int i = 0; i < 3000; i++) {
            int from = random.nextInt(names);
            int to = Math.min(names - 1, from + random.nextInt(names / 10));
            int time = random.nextInt(1000);
            deleteRange(time, name(from), name(to));
            for (int name = from; name <= to; name++) {
                deleted[name] = Math.max(deleted[name], time);
            }
            if (i % 100 == 0) {
                assertEquals(visible(written, deleted), names(), "with the seed " + seed);
            }
        }
        // There cannot be more than two bounds for each name.
        readUntil(2 * names);
        assertEquals(visible(written, deleted), names(), "with the seed " + seed);
        restart();
        assertEquals(visible(written, deleted), names(), "with the seed " + seed);
    }

    /** Else each of thousands of requests would leave its stack trace in the log. */
    @Test
    void thatAServerIsAwayIsNotSaidOfEachMerge(@TempDir Path directory) {
        // The store's own thread merges nothing: it would leave nothing to merge, or notice first that the server is away.
        try (TemporaryStore alone = new TemporaryStore(directory, request -> {})) {
            StoredTable stored = StoredTables.attach(alone.open(), table.id);
            for (int time = 1; time <= 2 * MergeQueue.MAX_UPDATES; time++) {
                PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1);
                UpdateWriter.write(update.timestamp(time).nowInSec(time).delete().build(), stored, Durability.INTERVAL);
            }
            alone.goAway();
            List<ILoggingEvent> said = LogOf.during("io.aiodb.cassandra", () -> {
                for (int time = 0; time < 2; time++) {
                    UpdateMerger.merge(new MergeQueue.Request(stored, table, Schema.key(1), List.of(), true, true));
                }
            });
            assertEquals(1, said.size(), said::toString);
            assertTrue(said.get(0).getFormattedMessage().contains("is away: no server"), said::toString);
        }
    }

    private static TreeSet<String> visible(int[] written, int[] deleted) {
        TreeSet<String> visible = new TreeSet<>();
        for (int name = 0; name < written.length; name++) {
            if (written[name] > deleted[name]) {
                visible.add(name(name));
            }
        }
        return visible;
    }

    private TreeSet<String> names() {
        TreeSet<String> names = new TreeSet<>();
        try (UnfilteredRowIterator read = read()) {
            while (read.hasNext()) {
                if (read.next() instanceof Row row && !row.isEmpty()) {
                    names.add(Schema.string(row.clustering().bufferAt(0)));
                }
            }
        }
        return names;
    }

    private static String name(int number) {
        return String.format("n%04d", number);
    }

    private void deleteRange(int time, String from, String to) {
        write(update -> update.timestamp(time).nowInSec(time).addRangeTombstone().start(from).end(to));
    }

    private void write(Consumer<PartitionUpdate.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1);
        fill.accept(update);
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private UnfilteredRowIterator read() {
        return PartitionReader.read(storedTable, table, Schema.key(1), Slices.ALL, ColumnFilter.all(table), false);
    }

    /** Reads, until what belongs to the partition, or else its only row, is of so few updates. */
    private void readUntil(int updates) throws InterruptedException {
        await(() -> {
            try (UnfilteredRowIterator read = read()) {
                read.forEachRemaining(row -> {});
            }
            int header = updates(StoredKey.DELETION) + updates(StoredKey.STATIC) + updates(StoredKey.RANGE_TOMBSTONE);
            return (header > 0 ? header : updates(StoredKey.ROW)) <= updates;
        });
    }

    /** Of how many updates the entries of a kind are. */
    private int updates(byte wanted) {
        int updates = 0;
        StoredKey.Partition partition = StoredKey.Partition.of(Schema.key(1));
        try (Rows rows = storedTable.table().scan(Range.all())) {
            while (rows.next()) {
                byte kind = partition.kind(rows.key());
                if (kind == wanted) {
                    updates += FrameReader.count(rows.value());
                }
            }
        }
        return updates;
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        for (int tries = 0; !condition.getAsBoolean(); tries++) {
            assertTrue(tries < WAIT_SECONDS * 100, "the entries were not merged");
            Thread.sleep(10);
        }
    }
}
