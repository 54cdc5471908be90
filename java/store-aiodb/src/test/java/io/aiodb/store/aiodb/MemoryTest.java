package io.aiodb.store.aiodb;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Durability;
import io.aiodb.store.Statistics;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import io.aiodb.store.TableStatistics;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The budget of an open store, and what is said of it. */
class MemoryTest {
    private static final long MIB = 1 << 20;
    private static final String BUDGET = "memory_budget_bytes";

    /** More than any machine has. */
    private static final long TOO_MUCH = 1L << 50;

    private static final int ROWS = 2000;

    @TempDir
    Path directory;

    @Test
    void theBudgetIsChangedWhileTheStoreIsUsed() {
        try (Store store = open(Map.of("memory_bytes", Long.toString(256 * MIB)))) {
            Table table = store.createTable("rows");
            fill(table);
            assertEquals(256 * MIB, budget(store));
            store.setMemoryBytes(OptionalLong.of(40 * MIB));
            assertEquals(40 * MIB, budget(store));
            fill(table);
            check(table);
            String why = assertThrows(
                            StoreException.Configuration.class, () -> store.setMemoryBytes(OptionalLong.of(MIB)))
                    .getMessage();
            assertTrue(why.contains("memory_bytes = " + MIB) && why.contains("at least"), why);
            assertEquals(40 * MIB, budget(store));
            store.setMemoryBytes(OptionalLong.empty());
            assertTrue(budget(store) >= 64 * MIB, "the store decides");
            check(table);
        }
        try (Store store = open(Map.of("memory_bytes", Long.toString(256 * MIB)))) {
            assertEquals(256 * MIB, budget(store), "an opening goes by its parameters");
            check(store.table("rows"));
        }
    }

    @Test
    void moreThanThereIsIsAWarning() {
        try (Store store = open(Map.of())) {
            assertEquals(List.of(), store.statistics().warnings());
            store.setMemoryBytes(OptionalLong.of(TOO_MUCH));
            Statistics found = store.statistics();
            assertEquals(1, found.warnings().size(), found::toString);
            assertTrue(found.warnings().get(0).contains("memory_bytes"), found::toString);
            assertTrue(found.counters().get(BUDGET) < TOO_MUCH, "no more than there is");
            store.setMemoryBytes(OptionalLong.empty());
            assertEquals(List.of(), store.statistics().warnings());
        }
    }

    @Test
    void runsAreCountedAndNothingIsFullThatDoesNotGrow() {
        try (Store store = open(Map.of())) {
            fill(store.createTable("rows"));
            Statistics found = store.statistics();
            assertFalse(found.counters().containsKey("memory_full_seconds"), found::toString);
            assertEquals(0, found.counters().get("runs_above_bound"));
        }
        try (Store store = open(Map.of())) {
            TableStatistics found = store.table("rows").statistics();
            assertTrue(found.counters().get("runs") > 0 && found.counters().get("run_bytes") > 0, found::toString);
            assertTrue(found.counters().get("merge_debt_bytes") <= found.counters().get("run_bytes"), found::toString);
            assertTrue(store.statistics().counters().get("runs") > 0);
        }
    }

    private static long budget(Store store) {
        return store.statistics().counters().get(BUDGET);
    }

    private Store open(Map<String, String> parameters) {
        return Stores.open("aiodb", directory, parameters);
    }

    private static void fill(Table table) {
        for (int row = 0; row < ROWS; row++) {
            table.put(bytes(row), bytes(row), Durability.NONE);
        }
    }

    private static void check(Table table) {
        for (int row = 0; row < ROWS; row++) {
            assertArrayEquals(bytes(row), table.get(bytes(row)));
        }
    }

    private static byte[] bytes(int row) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(row).array();
    }
}
