package io.aiodb.cassandra.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Consumer;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

class BoundedUpdatesTest {
    private static final int LARGE_ROW_BYTES = 64 << 10;

    private final TableMetadata table = Schema.table();

    @Test
    void largeRowsAreInUpdatesOfFewBytes() {
        PartitionUpdate partition = partition(1, update -> addRows(update, 600, LARGE_ROW_BYTES));
        List<PartitionUpdate> updates = updates(partition);
        for (PartitionUpdate update : updates) {
            int bytes = update.dataSize();
            assertTrue(bytes < BoundedUpdates.MAX_BYTES + 2 * LARGE_ROW_BYTES, "an update of " + bytes + " bytes");
        }
        assertSame(List.of(partition), updates);
    }

    @Test
    void smallRowsAreInUpdatesOfFewRows() {
        PartitionUpdate partition = partition(1, update -> addRows(update, 2 * BoundedUpdates.MAX_ENTRIES + 1, 1));
        List<PartitionUpdate> updates = updates(partition);
        assertEquals(3, updates.size());
        assertSame(List.of(partition), updates);
    }

    @Test
    void aRowThatIsMoreByItselfIsAnUpdate() {
        PartitionUpdate partition = partition(1, update -> {
            update.row("a", 2).add("v", "before");
            update.row("a", 1).add("v", "v".repeat(3 * BoundedUpdates.MAX_BYTES));
            update.row("a", 0).add("v", "behind");
        });
        List<PartitionUpdate> updates = updates(partition);
        assertEquals(2, updates.size());
        assertSame(List.of(partition), updates);
    }

    /** Range tombstones between rows begin in one update and end in another. */
    @Test
    void deletionsAndTheStaticRowComeAlong() {
        int rows = 3 * BoundedUpdates.MAX_ENTRIES;
        PartitionUpdate partition = partition(1, update -> {
            update.delete();
            update.timestamp(20).row().add("s", "static");
            // The second clustering column is reversed.
            update.addRangeTombstone().start("a", rows).end("a", 10);
            update.timestamp(15).addRangeTombstone().start("a", rows / 2).end("b");
            update.timestamp(20);
            for (int row = 0; row < rows; row += 2) {
                update.timestamp(20).row("a", row).add("v", "x");
                update.timestamp(30).addRangeTombstone().start("c", row + 1).end("c", row);
            }
        });
        assertSame(List.of(partition), updates(partition));
    }

    @Test
    void partitionsFollowEachOther() {
        List<PartitionUpdate> partitions = List.of(
                partition(1, update -> addRows(update, 700, 10)),
                partition(2, update -> update.delete()),
                partition(3, update -> addRows(update, BoundedUpdates.MAX_ENTRIES, 10)),
                partition(4, update -> addRows(update, 1, 10)));
        List<PartitionUpdate> updates = updates(partitions.toArray(PartitionUpdate[]::new));
        assertEquals(5, updates.size());
        assertSame(partitions, updates);
    }

    private PartitionUpdate partition(int key, Consumer<PartitionUpdate.SimpleBuilder> fill) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key).timestamp(10).nowInSec(1000);
        fill.accept(update);
        return update.build();
    }

    private static void addRows(PartitionUpdate.SimpleBuilder update, int rows, int bytes) {
        for (int row = 0; row < rows; row++) {
            update.row("a", row).add("v", "v".repeat(bytes));
        }
    }

    private List<PartitionUpdate> updates(PartitionUpdate... partitions) {
        List<PartitionUpdate> updates = new ArrayList<>();
        try (BoundedUpdates bounded = new BoundedUpdates(new Partitions(table, partitions))) {
            while (bounded.hasNext()) {
                PartitionUpdate update = bounded.next();
                int entries = update.rowCount() + update.deletionInfo().rangeCount();
                assertTrue(entries <= BoundedUpdates.MAX_ENTRIES, "an update of " + entries + " entries");
                updates.add(update);
            }
        }
        return updates;
    }

    /** Whether updates make the same of each partition, in the order of these. */
    private static void assertSame(List<PartitionUpdate> partitions, List<PartitionUpdate> updates) {
        int next = 0;
        for (PartitionUpdate partition : partitions) {
            List<PartitionUpdate> parts = new ArrayList<>();
            while (next < updates.size() && updates.get(next).partitionKey().equals(partition.partitionKey())) {
                parts.add(updates.get(next));
                next++;
            }
            assertEquals(text(partition), text(PartitionUpdate.merge(parts)));
        }
        assertEquals(updates.size(), next);
    }

    private static String text(PartitionUpdate partition) {
        StringBuilder text = new StringBuilder();
        try (UnfilteredRowIterator read = partition.unfilteredIterator()) {
            text.append(read.partitionLevelDeletion()).append('\n');
            text.append(read.staticRow().toString(read.metadata(), true)).append('\n');
            read.forEachRemaining(entry -> {
                text.append(entry.toString(read.metadata(), true)).append(' ');
                text.append(entry instanceof Row row ? row.dataSize() : 0).append('\n');
            });
        }
        return text.toString();
    }

    /** Some, one after the other. */
    private static final class Partitions extends AbstractUnfilteredPartitionIterator {
        private final TableMetadata table;
        private final Iterator<PartitionUpdate> updates;

        Partitions(TableMetadata table, PartitionUpdate... updates) {
            this.table = table;
            this.updates = Arrays.asList(updates).iterator();
        }

        @Override
        public TableMetadata metadata() {
            return table;
        }

        @Override
        public boolean hasNext() {
            return updates.hasNext();
        }

        @Override
        public UnfilteredRowIterator next() {
            return updates.next().unfilteredIterator();
        }
    }
}
