package io.aiodb.store.aiodb;

import static java.nio.ByteBuffer.wrap;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tables keep the index that they were made with, whatever their store is opened with. */
class IndexesTest {
    private static final int ROWS = 500;

    @TempDir
    Path directory;

    @Test
    void tablesOfEitherIndexAreOpenedWithTheOther() {
        for (List<String> indexes : List.of(List.of("lmdb", "lsm"), List.of("lsm", "lmdb"))) {
            Path place = directory.resolve(indexes.get(0));
            try (Store store = open(place, indexes.get(0))) {
                fill(store.createTable("first"));
            }
            for (int opening = 0; opening < 2; opening++) {
                try (Store store = open(place, indexes.get(1))) {
                    check(store.table("first"));
                    fill(store.table("first"));
                    fill(store.tableOrCreate("second"));
                    check(store.table("second"));
                }
            }
            try (Store store = open(place, indexes.get(0))) {
                check(store.table("first"));
                check(store.table("second"));
                assertEquals(List.of("first", "second"), store.tableNames());
            }
        }
    }

    @Test
    void tablesOfBothIndexesLiveInOneStore() {
        try (Store store = open(directory, "lmdb")) {
            fill(store.createTable("lmdb"));
        }
        try (Store store = open(directory, "lsm")) {
            Table lmdb = store.table("lmdb");
            Table lsm = store.createTable("lsm");
            fill(lsm);
            try (Snapshot before = store.snapshot()) {
                Batch batch = new Batch();
                for (Table table : List.of(lmdb, lsm)) {
                    batch.delete(table, wrap(key(0))).put(table, wrap(key(ROWS)), wrap(value(ROWS)));
                }
                store.write(batch, Durability.SYNC);
                for (Table table : List.of(lmdb, lsm)) {
                    assertNull(table.get(key(0)));
                    assertArrayEquals(value(ROWS), table.get(key(ROWS)));
                    assertArrayEquals(value(0), before.get(table, key(0)));
                    assertNull(before.get(table, key(ROWS)));
                }
            }
        }
        try (Store store = open(directory, "lsm")) {
            for (String name : List.of("lmdb", "lsm")) {
                assertNull(store.table(name).get(key(0)));
                check(store.table(name));
            }
            assertTrue(Files.exists(directory.resolve("index/lmdb")), "one index");
            assertTrue(Files.exists(directory.resolve("index/runs")), "and the other");
        }
    }

    @Test
    void onlySortedRunsAreCompressed() {
        Map<String, String> lmdb = Map.of("index", "lmdb", "block_compression", "zstd");
        StoreException refused =
                assertThrows(StoreException.Configuration.class, () -> Stores.open("aiodb", directory, lmdb));
        assertTrue(refused.getMessage().contains("block_compression = zstd"), refused.getMessage());
    }

    private static Store open(Path place, String index) {
        return Stores.open("aiodb", place, Map.of("segment_bytes", "65536", "index", index));
    }

    private static void fill(Table table) {
        for (int row = 0; row < ROWS; row++) {
            table.put(key(row), value(row), Durability.NONE);
        }
    }

    /** The rows of {@link #fill} but the first. */
    private static void check(Table table) {
        for (int row = 1; row < ROWS; row++) {
            assertArrayEquals(value(row), table.get(key(row)));
        }
        try (Rows found = table.scan(Range.all().from(key(1)).before(key(ROWS)))) {
            for (int row = 1; row < ROWS; row++) {
                assertTrue(found.next(), "row " + row);
                assertEquals(wrap(key(row)), found.key());
                assertEquals(wrap(value(row)), found.value());
            }
            assertFalse(found.next());
        }
    }

    private static byte[] key(int row) {
        return String.format("row %06d", row).getBytes(UTF_8);
    }

    private static byte[] value(int row) {
        return ("value " + row).repeat(20).getBytes(UTF_8);
    }
}
