package io.aiodb.cassandra.lifecycle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.compaction.UpdateMerger;
import io.aiodb.cassandra.fixture.EndingStore;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.Stores;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Map;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What flushes, streams and snapshots are given, and what becomes of its scan. */
class FlushSetTest {
    private static final int PARTITIONS = 3;
    private static final int ROWS = 2;

    private final TableMetadata table = Schema.table();

    @TempDir
    Path directory;

    private Store real;
    private EndingStore store;
    private FlushSet rows;

    @BeforeEach
    void open() {
        Path place = directory.resolve("store");
        real = Stores.open("aiodb", place, Map.of("segment_bytes", "1048576"));
        store = new EndingStore(real);
        StoreConfiguration configuration = new StoreConfiguration("aiodb", place, Durability.INTERVAL, Map.of());
        StoredTable storedTable =
                StoredTables.attach(new OpenStore(configuration, store.seen(), UpdateMerger::merge), table.id);
        for (int key = 0; key < PARTITIONS; key++) {
            PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key).timestamp(1);
            for (int row = 0; row < ROWS; row++) {
                update.row("a", row).add("v", "value");
            }
            UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
        }
        rows = new FlushSet(null, table, storedTable, null, null, CommitLogPosition.NONE, CommitLogPosition.NONE);
    }

    @AfterEach
    void close() {
        real.close();
    }

    /** As {@code Flushing.FlushRunnable} goes through them. */
    @Test
    void aWriterThatTakesAllGetsAllAndLeavesNoScan() {
        int partitions = 0;
        for (FlushSet.Streamed partition : rows) {
            assertFalse(partition.isEmpty());
            try (UnfilteredRowIterator streamed = partition.unfilteredIterator()) {
                partitions++;
                int found = 0;
                while (streamed.hasNext()) {
                    streamed.next();
                    found++;
                }
                assertEquals(ROWS, found);
            }
        }
        assertEquals(PARTITIONS, partitions);
        assertEquals(0, store.openScans());
    }

    @Test
    void aWriterThatFailsWithinAPartitionLeavesNoScan() {
        Iterator<FlushSet.Streamed> partitions = rows.iterator();
        FlushSet.Streamed partition = partitions.next();
        assertFalse(partition.isEmpty());
        assertEquals(1, store.openScans());
        try (UnfilteredRowIterator streamed = partition.unfilteredIterator()) {
            assertTrue(streamed.hasNext());
            streamed.next();
        }
        assertEquals(0, store.openScans());
        // A writer that went on would end as if there were no other partition.
        assertThrows(IllegalStateException.class, partitions::hasNext);
        assertThrows(IllegalStateException.class, partitions::next);
    }

    @Test
    void aCallerThatClosesThemLeavesNoScan() {
        try (FlushSet.Partitions partitions = rows.partitions()) {
            assertTrue(partitions.hasNext());
            assertEquals(1, store.openScans());
        }
        assertEquals(0, store.openScans());
    }
}
