package io.aiodb.store.aiodb;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Durability;
import io.aiodb.store.StorageMode;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import io.aiodb.store.TableModes;
import io.aiodb.store.TableStatistics;
import io.aiodb.store.ValueKind;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Predicate;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a table's modes bring into memory, and what they leave on the disk. */
class ModesTest {
    private static final TableModes ALL = new TableModes(StorageMode.MEMORY, StorageMode.MEMORY);
    private static final TableModes NOTHING = new TableModes(StorageMode.DISK, StorageMode.DISK);

    private static final int ROWS = 2000;
    private static final int VALUE_BYTES = 500;

    /** Warming is done in the background, by a machine that may have other work. */
    private static final int LOOKS = 600;

    private static final int LOOK_MS = 50;

    @TempDir
    Path directory;

    @Test
    void valuesComeIntoMemoryWhenTheModeChangesAndWhenTheStoreIsOpened() {
        try (Store store = open(Map.of())) {
            Table table = store.createTable("rows");
            fill(table);
            assertEquals(0, table.statistics().valuesInMemory().orElseThrow(), "no cache was asked for");
            assertEquals(0, table.statistics().counters().get("cached_values"));
            table.setModes(ALL);
            await(table, ModesTest::hasAllValues);
            check(table);
            TableStatistics read = table.statistics();
            assertTrue(read.counters().get("value_hits") >= ROWS, "gets found them there: " + read);
            assertTrue(read.counters().get("cached_value_bytes") >= ROWS * VALUE_BYTES, read::toString);
        }
        try (Store store = open(Map.of())) {
            Table table = store.table("rows");
            assertEquals(ALL, table.statistics().modes());
            await(table, ModesTest::hasAllValues);
            await(table, found -> found.keysInMemory().orElseThrow() == 1);
            assertTrue(table.statistics().counters().get("blocks") > 0, "the keys lie in runs");
            check(table);
        }
    }

    @Test
    void aTableOnDiskComesIntoNoCache() {
        try (Store store = open(Map.of("cache_bytes", "16777216", "cache_writes", "yes"))) {
            Table onDisk = store.createTable("on disk", ValueKind.BYTES, NOTHING);
            Table other = store.createTable("other");
            fill(onDisk);
            fill(other);
            check(onDisk);
            check(other);
            assertEquals(0, onDisk.statistics().counters().get("cached_values"));
            assertTrue(other.statistics().counters().get("cached_values") > 0, "as it always was");
        }
        try (Store store = open(Map.of())) {
            Table onDisk = store.table("on disk");
            check(onDisk);
            TableStatistics found = onDisk.statistics();
            assertTrue(found.counters().get("blocks") > 0, "the keys lie in runs");
            assertEquals(0, found.counters().get("cached_blocks"));
            assertEquals(0, found.keysInMemory().orElseThrow());
        }
    }

    @Test
    void parametersAreForTablesThatSayNothing() {
        try (Store store = open(Map.of("keys", "memory", "values", "disk"))) {
            TableModes given = new TableModes(StorageMode.MEMORY, StorageMode.DISK);
            assertEquals(given, store.createTable("first").statistics().modes());
            assertEquals(given, store.tableOrCreate("second").statistics().modes());
            Table own = store.createTable("third", ValueKind.BYTES, TableModes.AUTO);
            assertEquals(TableModes.AUTO, own.statistics().modes());
        }
        try (Store store = open(Map.of("values", "memory"))) {
            assertEquals(StorageMode.DISK, store.table("first").statistics().modes().values(), "it keeps its own");
        }
    }

    @Test
    void whatMakesNoSenseIsRefusedWithTheReason() {
        assertRefused(Map.of("keys", "ram"), "keys = ram", "auto, memory, disk");
        assertRefused(Map.of("keys", "disk", "values", "memory"), "keys = disk", "leave one of both out");
        assertRefused(Map.of("keys", "disk", "index", "lmdb"), "keys = disk", "page cache");
        try (Store store = open(Map.of("index", "lmdb"))) {
            Table table = store.createTable("rows");
            String why = assertThrows(StoreException.Configuration.class, () -> table.setModes(NOTHING))
                    .getMessage();
            assertTrue(why.contains("keys") && why.contains("page cache"), why);
            assertTrue(table.statistics().keysInMemory().isEmpty(), "the system's page cache has them");
        }
    }

    private void assertRefused(Map<String, String> parameters, String... words) {
        String why = assertThrows(StoreException.Configuration.class, () -> open(parameters))
                .getMessage();
        for (String word : words) {
            assertTrue(why.contains(word), why);
        }
    }

    private static boolean hasAllValues(TableStatistics found) {
        return found.valuesInMemory().orElseThrow() == 1;
    }

    private static void await(Table table, Predicate<TableStatistics> wanted) {
        TableStatistics found = table.statistics();
        for (int look = 0; look < LOOKS && !wanted.test(found); look++) {
            try {
                Thread.sleep(LOOK_MS);
            } catch (InterruptedException interruption) {
                throw new AssertionError("interrupted", interruption);
            }
            found = table.statistics();
        }
        assertTrue(wanted.test(found), found.toString());
    }

    private Store open(Map<String, String> parameters) {
        Map<String, String> all = new HashMap<>(Map.of("segment_bytes", "1048576", "memory_bytes", "67108864"));
        all.putAll(parameters);
        return Stores.open("aiodb", directory, all);
    }

    private static void fill(Table table) {
        for (int row = 0; row < ROWS; row++) {
            table.put(key(row), value(row), Durability.NONE);
        }
    }

    private static void check(Table table) {
        for (int row = 0; row < ROWS; row++) {
            assertArrayEquals(value(row), table.get(key(row)));
        }
    }

    private static byte[] key(int row) {
        return ByteBuffer.allocate(Integer.BYTES).putInt(row).array();
    }

    private static byte[] value(int row) {
        return ByteBuffer.allocate(VALUE_BYTES).putInt(row).array();
    }
}
