package io.aiodb.cassandra.lifecycle;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.fixture.TemporaryStore;
import io.aiodb.cassandra.format.AutoSnapshot;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.nio.file.Path;
import java.util.List;
import java.util.UUID;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The rows of a table after a restart at each step of a truncate, drop, or change of the memtable. */
class StoredTablesTest {
    private final TableMetadata table = Schema.table();

    @TempDir
    Path directory;

    private TemporaryStore store;

    @BeforeEach
    void open() {
        store = new TemporaryStore(directory.resolve("store"));
    }

    @AfterEach
    void close() {
        store.close();
    }

    @Test
    void aStoreBelongsToTheNodeThatMadeIt() {
        UUID node = UUID.randomUUID();
        store.open().belongTo(node);
        store.restart().belongTo(node);
        OpenStore elsewhere = store.restart();
        UUID other = UUID.randomUUID();
        String message = assertThrows(ConfigurationException.class, () -> elsewhere.belongTo(other))
                .getMessage();
        assertTrue(message.contains("belongs to the node " + node + ", and this is the node " + other), message);
        // It was closed, so that an operator who puts it right can open it.
        store.restart().belongTo(node);
    }

    @Test
    void aStoreOfAnotherFormIsNotRead() {
        UUID node = UUID.randomUUID();
        store.open().belongTo(node);
        store.open().store().table("catalog").delete(new byte[] {'f'}, Durability.SYNC);
        OpenStore older = store.restart();
        String message = assertThrows(ConfigurationException.class, () -> older.belongTo(node)).getMessage();
        assertTrue(message.contains("a form that this version does not read"), message);
    }

    @Test
    void anUntouchedTableIsNotStored() {
        StoredTable storedTable = attach();
        assertNull(storedTable.tableOrNull());
        assertTrue(storedTable.stats().isEmpty());
        storedTable.remove();
        assertEquals(List.of("catalog"), store.open().store().tableNames());
    }

    @Test
    void rowsAndWhatIsKnownOfThemSurviveARestart() {
        StoredTable storedTable = attach();
        write(storedTable, 1, 5_000_000_000_000_000L);
        long bound = storedTable.stats().minTimestamp();
        store.restart();
        StoredTable again = attach();
        assertTrue(PartitionReader.exists(again, Schema.key(1)));
        assertFalse(again.stats().isEmpty());
        assertEquals(bound, again.stats().minTimestamp());
        assertTrue(bound <= 5_000_000_000_000_000L);
    }

    @Test
    void aSecondMemtableGetsAGenerationOfItsOwn() {
        StoredTable old = attach();
        write(old, 1, 1);
        StoredTable next = attach();
        assertNull(next.tableOrNull());
        write(next, 2, 2);
        assertFalse(PartitionReader.exists(next, Schema.key(1)));
        assertFalse(PartitionReader.exists(old, Schema.key(2)));
    }

    /** Of two partitions the second is there since the table was truncated. */
    private void truncateBetweenWrites() {
        StoredTable old = attach();
        write(old, 1, 1);
        StoredTable next = attach();
        old.mark(Catalog.State.CLEARED);
        write(next, 2, 2);
    }

    /** A table that was truncated, and then dropped while this node was down. */
    @Test
    void rowsOfATableThatTheSchemaDoesNotKnowStay() {
        truncateBetweenWrites();
        MemtableMigration.takeOver(store.restart());
        store.restart();
        assertTrue(PartitionReader.exists(attach(), Schema.key(2)));
    }

    @Test
    void whatWasClearedIsGoneAfterARestart() {
        truncateBetweenWrites();
        store.restart();
        StoredTable again = attach();
        assertFalse(PartitionReader.exists(again, Schema.key(1)));
        assertTrue(PartitionReader.exists(again, Schema.key(2)));
        assertEquals(2, store.open().store().tableNames().size());
    }

    @Test
    void whatWasClearedAndNeverFollowedIsGoneAfterARestart() {
        StoredTable old = attach();
        write(old, 1, 1);
        old.mark(Catalog.State.CLEARED);
        store.restart();
        assertTrue(attach().stats().isEmpty());
        assertEquals(List.of("catalog"), store.open().store().tableNames());
    }

    @Test
    void whatIsKeptForASnapshotIsNotTheTablesAndStillThereAfterARestart() {
        StoredTable old = attach();
        write(old, 1, 1);
        StoredTable next = attach();
        old.keep(new AutoSnapshot("truncated-1-t", "CREATE TABLE", table));
        write(next, 2, 2);
        OpenStore open = store.restart();
        StoredTable again = attach();
        assertFalse(PartitionReader.exists(again, Schema.key(1)));
        assertTrue(PartitionReader.exists(again, Schema.key(2)));
        Catalog.Entry entry = open.catalog().storedTables(table.id).get(0);
        assertEquals(Catalog.State.KEPT, entry.state());
        StoredTable kept = StoredTables.attachKept(open, entry);
        assertEquals("truncated-1-t", kept.kept().snapshot());
        assertTrue(PartitionReader.exists(kept, Schema.key(1)));
        kept.remove();
        assertEquals(1, open.catalog().storedTables(table.id).size());
        assertEquals(2, open.store().tableNames().size());
    }

    @Test
    void whatWasBeingFlushedIsTheTablesAgainAfterARestart() {
        StoredTable old = attach();
        write(old, 1, 1);
        old.mark(Catalog.State.FLUSHING);
        store.restart();
        StoredTable again = attach();
        assertTrue(PartitionReader.exists(again, Schema.key(1)));
        assertEquals(
                List.of(Catalog.State.LIVE),
                store.open().catalog().storedTables(table.id).stream().map(Catalog.Entry::state).toList());
    }

    @Test
    void whatWasBeingFlushedAndWhatFollowedAreOneAfterARestart() {
        StoredTable old = attach();
        for (int i = 0; i < 2500; i++) {
            write(old, i, 100 + i);
        }
        StoredTable next = attach();
        old.mark(Catalog.State.FLUSHING);
        write(next, 2000, 5000);
        write(next, 9999, 5000);
        store.restart();
        StoredTable again = attach();
        for (int i = 0; i < 2500; i++) {
            assertTrue(PartitionReader.exists(again, Schema.key(i)));
        }
        assertTrue(PartitionReader.exists(again, Schema.key(9999)));
        assertEquals(1, store.open().catalog().storedTables(table.id).size());
        assertEquals(2, store.open().store().tableNames().size());
    }

    @Test
    void whatIsRemovedLeavesNothing() {
        StoredTable storedTable = attach();
        write(storedTable, 1, 1);
        storedTable.mark(Catalog.State.CLEARED);
        storedTable.remove();
        assertEquals(List.of("catalog"), store.open().store().tableNames());
        assertTrue(store.open().catalog().storedTables().isEmpty());
    }

    @Test
    void aStateThatCannotBeStoredIsStoredWhenItIsSetAgain() {
        StoredTable old = attach();
        write(old, 1, 1);
        store.refuseBatchesAfter(0);
        assertThrows(StoreException.Full.class, () -> old.mark(Catalog.State.CLEARED));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        old.mark(Catalog.State.CLEARED);
        store.restart();
        assertTrue(attach().stats().isEmpty());
    }

    @Test
    void whatIsRemovedHalfWayIsRemovedAnotherTime() {
        StoredTable storedTable = attach();
        write(storedTable, 1, 1);
        storedTable.table().drop();
        storedTable.remove();
        assertTrue(store.open().catalog().storedTables().isEmpty());
    }

    @Test
    void aTableIsTheTablesAgainThoughThereIsNoRoomToSaySo() {
        StoredTable old = attach();
        write(old, 1, 1);
        old.mark(Catalog.State.FLUSHING);
        store.restart();
        store.refuseBatchesAfter(0);
        assertTrue(PartitionReader.exists(attach(), Schema.key(1)));
    }

    @Test
    void aSnapshotOfWhichOnlyTheProcessKnowsEndsWithIt() {
        StoredTable old = attach();
        write(old, 1, 1);
        old.keepUnrecorded(new AutoSnapshot("truncated-1-t", "CREATE TABLE", table));
        old.mark(Catalog.State.CLEARED);
        assertTrue(old.isKeptUnrecorded());
        assertEquals("truncated-1-t", old.kept().snapshot());
        assertTrue(PartitionReader.exists(old, Schema.key(1)));
        store.restart();
        assertTrue(attach().stats().isEmpty());
        assertEquals(List.of("catalog"), store.open().store().tableNames());
    }

    @Test
    void aWriteThatComesAfterTheSwitchHasTheStateOfIts() {
        StoredTable old = attach();
        old.mark(Catalog.State.CLEARED);
        write(old, 1, 1);
        store.restart();
        assertTrue(attach().stats().isEmpty());
    }

    private StoredTable attach() {
        return StoredTables.attach(store.open(), table.id);
    }

    private void write(StoredTable storedTable, int key, long timestamp) {
        PartitionUpdate.SimpleBuilder update =
                PartitionUpdate.simpleBuilder(table, Int32Type.instance.compose(Schema.key(key).getKey()));
        update.timestamp(timestamp).row("a", 1).add("v", "value");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }
}
