package io.aiodb.store;

import static io.aiodb.store.StoreContract.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What every store must do with the modes of its tables: keep them, or say that it has none. */
public abstract class StoreModesContract extends Contract {
    private static final TableModes KEYS = new TableModes(StorageMode.MEMORY, StorageMode.DISK);
    private static final TableModes ALL = new TableModes(StorageMode.MEMORY, StorageMode.MEMORY);
    private static final TableModes NO_VALUES = new TableModes(StorageMode.AUTO, StorageMode.DISK);
    private static final TableModes CONTRADICTION = new TableModes(StorageMode.DISK, StorageMode.MEMORY);

    private static final int ROWS = 200;

    /** Enough for a store with little in it. */
    private static final long BUDGET_BYTES = 96L << 20;

    private Store store;

    protected StoreModesContract(String kind, Map<String, String> parameters) {
        super(kind, parameters);
    }

    @BeforeEach
    void openStore() {
        store = open("store");
    }

    @AfterEach
    void closeStore() {
        store.close();
    }

    @Test
    void tablesOfAllStoresCanBeLeftAlone() {
        Table table = store.createTable("rows", ValueKind.BYTES, TableModes.AUTO);
        fill(table, "v");
        table.setModes(TableModes.AUTO);
        TableStatistics found = table.statistics();
        assertEquals(TableModes.AUTO, found.modes());
        assertTrue(found.estimatedRows() > 0, "rows");
        assertShare(found.keysInMemory());
        assertShare(found.valuesInMemory());
        check(table, "v");
    }

    @Test
    void aTableHasTheModesThatItWasMadeWith() {
        if (!store.capabilities().storageModes()) {
            assertThrows(StoreException.Unsupported.class, () -> store.createTable("rows", ValueKind.BYTES, KEYS));
            assertEquals(List.of(), store.tableNames());
            Table without = store.createTable("rows");
            assertThrows(StoreException.Unsupported.class, () -> without.setModes(KEYS));
            assertEquals(TableModes.AUTO, without.statistics().modes());
            return;
        }
        Table table = store.createTable("rows", ValueKind.FRAMES, KEYS);
        assertEquals(KEYS, table.statistics().modes());
        assertEquals(TableModes.AUTO, store.createTable("others").statistics().modes());
        fill(table, "v");
        table.truncate();
        assertEquals(KEYS, table.statistics().modes(), "a truncate keeps them");
        store.close();
        store = open("store");
        assertEquals(KEYS, store.table("rows").statistics().modes(), "and so does the store");
        store.table("rows").drop();
        assertEquals(TableModes.AUTO, store.createTable("rows").statistics().modes(), "a new table of the name has its own");
    }

    @Test
    void modesChangeWhileTheTableIsUsed() {
        if (!store.capabilities().storageModes()) {
            return;
        }
        Table table = store.createTable("rows");
        fill(table, "before");
        AtomicBoolean ends = new AtomicBoolean();
        CompletableFuture<Void> writer = CompletableFuture.runAsync(() -> {
            for (int row = 0; !ends.get(); row = (row + 1) % ROWS) {
                table.put(key(ROWS + row), bytes("beside"), Durability.NONE);
            }
        });
        try (Snapshot snapshot = store.snapshot()) {
            for (TableModes modes : List.of(ALL, NO_VALUES, KEYS, KEYS, TableModes.AUTO, ALL)) {
                table.setModes(modes);
                assertEquals(modes, table.statistics().modes());
                fill(table, "at " + modes);
                check(table, "at " + modes);
                assertArrayEquals(bytes("before"), snapshot.get(table, key(0)));
            }
        } finally {
            ends.set(true);
            writer.join();
        }
        store.close();
        store = open("store");
        assertEquals(ALL, store.table("rows").statistics().modes());
        check(store.table("rows"), "at " + ALL);
    }

    @Test
    void contradictionsAreRefusedAndChangeNothing() {
        if (!store.capabilities().storageModes()) {
            return;
        }
        String message = assertThrows(
                        StoreException.Configuration.class,
                        () -> store.createTable("none", ValueKind.BYTES, CONTRADICTION))
                .getMessage();
        assertTrue(message.contains("keys") && message.contains("disk"), message);
        assertFalse(store.tableNames().contains("none"), "no table is made");
        Table table = store.createTable("rows", ValueKind.BYTES, KEYS);
        assertThrows(StoreException.Configuration.class, () -> table.setModes(CONTRADICTION));
        assertEquals(KEYS, table.statistics().modes());
    }

    /** A store that has a budget of its own counts it, and can be given another. */
    @Test
    void aBudgetOfMemoryIsChangedOrSaidToBeUnsupported() {
        Long before = store.statistics().counters().get("memory_budget_bytes");
        assertThrows(NullPointerException.class, () -> store.setMemoryBytes(null));
        if (before == null) {
            assertThrows(StoreException.Unsupported.class, () -> store.setMemoryBytes(OptionalLong.of(BUDGET_BYTES)));
            assertThrows(StoreException.Unsupported.class, () -> store.setMemoryBytes(OptionalLong.empty()));
        } else {
            store.setMemoryBytes(OptionalLong.of(BUDGET_BYTES));
            assertEquals(BUDGET_BYTES, store.statistics().counters().get("memory_budget_bytes"));
            for (long bytes : new long[] {1, 0, -1, Long.MIN_VALUE}) {
                assertThrows(StoreException.Configuration.class, () -> store.setMemoryBytes(OptionalLong.of(bytes)));
            }
            assertEquals(BUDGET_BYTES, store.statistics().counters().get("memory_budget_bytes"), "nothing was changed");
        }
        store.close();
        assertThrows(StoreException.Closed.class, () -> store.setMemoryBytes(OptionalLong.of(BUDGET_BYTES)));
    }

    @Test
    void nothingIsKnownOfWhatIsGone() {
        assertThrows(NullPointerException.class, () -> store.createTable("none", ValueKind.BYTES, null));
        assertThrows(NullPointerException.class, () -> new TableModes(StorageMode.AUTO, null));
        Table table = store.createTable("rows");
        assertThrows(NullPointerException.class, () -> table.setModes(null));
        Table dropped = store.createTable("dropped");
        dropped.drop();
        assertThrows(StoreException.NoSuchTable.class, dropped::statistics);
        assertThrows(StoreException.NoSuchTable.class, () -> dropped.setModes(TableModes.AUTO));
        store.close();
        assertThrows(StoreException.Closed.class, table::statistics);
        assertThrows(StoreException.Closed.class, () -> table.setModes(TableModes.AUTO));
    }

    private static void assertShare(OptionalDouble share) {
        assertTrue(share.isEmpty() || share.getAsDouble() >= 0 && share.getAsDouble() <= 1, share::toString);
    }

    private static void fill(Table table, String value) {
        for (int row = 0; row < ROWS; row++) {
            table.put(key(row), bytes(value), Durability.NONE);
        }
    }

    private static void check(Table table, String value) {
        for (int row = 0; row < ROWS; row++) {
            assertArrayEquals(bytes(value), table.get(key(row)));
        }
    }

    private static byte[] key(int row) {
        return bytes(String.format("row %06d", row));
    }
}
