package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.AiodbMemtable;
import io.aiodb.store.Durability;
import io.aiodb.store.StorageMode;
import io.aiodb.store.TableModes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.cassandra.config.Config;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreConfigurationTest {
    @BeforeAll
    static void thereIsAConfiguration() {
        DatabaseDescriptor.clientInitialization();
    }

    @Test
    void allParametersAreTaken() {
        Map<String, String> parameters = new HashMap<>(Map.of(
                "store", "aiodb",
                "durability", "sync",
                "interval", "500ms",
                "directory", "/disk/rows",
                "memory", "1GiB",
                "cache", "64MiB",
                "index", "LSM",
                "inline_bytes", "64"));
        parameters.putAll(Map.of(
                "block_compression", "Zstd",
                "keys", "Memory",
                "values", "disk",
                "max_open_files", "4096"));
        StoreConfiguration parsed = StoreConfiguration.parse(parameters);
        assertTrue(parameters.isEmpty());
        assertEquals(Durability.SYNC, parsed.durability());
        assertEquals(Path.of("/disk/rows"), parsed.directory());
        assertEquals(new TableModes(StorageMode.MEMORY, StorageMode.DISK), parsed.modes());
        assertEquals(
                Map.of(
                        "interval_millis", "500",
                        "memory_bytes", "1073741824",
                        "cache_bytes", "67108864",
                        "cache_writes", "yes",
                        "index", "lsm",
                        "inline_bytes", "64",
                        "block_compression", "zstd",
                        "max_open_files", "4096"),
                parsed.storeParameters());
    }

    @Test
    void aStoreMayLieInSeveralDirectories() {
        StoreConfiguration parsed =
                StoreConfiguration.parse(new HashMap<>(Map.of("directory", "/disk1/rows, /disk2/rows", "interval", "1s")));
        assertEquals(Path.of("/disk1/rows"), parsed.directory());
        assertEquals(Map.of("interval_millis", "1000", "also", "/disk2/rows"), parsed.storeParameters());
        Map<String, String> other = new HashMap<>(Map.of("store", "rocksdb", "directory", "/a,/b"));
        String message = assertThrows(ConfigurationException.class, () -> StoreConfiguration.parse(other))
                .getMessage();
        assertTrue(message.contains("/a,/b: give one"), message);
    }

    @Test
    void aStoreOnAServerIsToldWhereItIs() {
        Map<String, String> given = new HashMap<>(Map.of(
                "store", "mysql", "durability", "sync", "host", "db.example", "port", "3307", "user", "rows",
                "password_file", "/etc/password", "timeout", "3s", "database", "ours", "connections", "8", "views", "32"));
        given.putAll(Map.of("access", "direct", "direct_port", "9997", "direct_secret_file", "/etc/secret"));
        Map<String, String> parameters = new HashMap<>(given);
        parameters.put("directory", "/d");
        StoreConfiguration parsed = StoreConfiguration.parse(parameters);
        assertTrue(parameters.isEmpty());
        assertTrue(parsed.isOnServer());
        Map<String, String> wanted = new HashMap<>(given);
        wanted.remove("store");
        wanted.put("timeout_millis", "3000");
        wanted.remove("timeout");
        assertEquals(wanted, parsed.storeParameters());
        UUID node = UUID.randomUUID();
        assertEquals(node.toString(), parsed.storeParameters(node).get("owner"));
        StoreConfiguration redis = StoreConfiguration.parse(
                new HashMap<>(Map.of("store", "redis", "directory", "/d", "name", "ours", "history", "1MiB")));
        assertEquals(
                Map.of("name", "ours", "history_bytes", "1048576", "durability", "interval"), redis.storeParameters());
    }

    /** So that a node moves the rows away from a server that its configuration does not name any more. */
    @Test
    void whereAServerWasIsKnownWithoutAConfiguration(@TempDir Path data) throws IOException {
        Config config = DatabaseDescriptor.getRawConfig();
        String[] before = config.data_file_directories;
        try {
            config.data_file_directories = new String[] {data.toString()};
            Map<String, String> given = Map.of("store", "redis", "host", "cache.example", "password_file", "/with space/\u00e9=1");
            StoreConfiguration parsed = StoreConfiguration.parse(new HashMap<>(given));
            Files.createDirectories(parsed.directory());
            parsed.keep();
            assertEquals(parsed, StoreConfiguration.ofDefaultDirectories("redis"));
        } finally {
            config.data_file_directories = before;
        }
    }

    @Test
    void byDefaultAStoreLiesWhereItWasMade(@TempDir Path data) throws IOException {
        Config config = DatabaseDescriptor.getRawConfig();
        String[] before = config.data_file_directories;
        try {
            config.data_file_directories = new String[] {data + "/1", data + "/2"};
            assertDefault(data.resolve("1/aiodb-stores/aiodb"), data.resolve("2/aiodb-stores/aiodb"));
            Files.createDirectories(data.resolve("2/aiodb-stores/aiodb"));
            Files.createFile(data.resolve("2/aiodb-stores/aiodb/STORE"));
            assertDefault(data.resolve("2/aiodb-stores/aiodb"), null);
            assertEquals(Set.of("aiodb"), StoreConfiguration.kindsInDefaultDirectories());
            StoreConfiguration other = StoreConfiguration.parse(new HashMap<>(Map.of("store", "lmdb")));
            assertEquals(data.resolve("1/aiodb-stores/lmdb"), other.directory());
        } finally {
            config.data_file_directories = before;
        }
    }

    private static void assertDefault(Path first, Path also) {
        StoreConfiguration parsed = StoreConfiguration.ofDefaultDirectories("aiodb");
        assertEquals(first, parsed.directory());
        assertEquals(also == null ? Map.of() : Map.of("also", also.toString()), parsed.storeParameters());
    }

    @Test
    void factoriesOfTheSameParametersAreEqual() {
        assertEquals(factory(Map.of("directory", "/d")), factory(Map.of("directory", "/d", "durability", "interval")));
        assertEquals(
                factory(Map.of("directory", "/d")).hashCode(),
                factory(Map.of("directory", "/d", "durability", "interval")).hashCode());
        assertNotEquals(factory(Map.of("directory", "/d")), factory(Map.of("directory", "/d", "durability", "sync")));
        assertNotEquals(factory(Map.of("directory", "/d")), factory(Map.of("directory", "/e")));
    }

    @Test
    void configurationsThatDifferInModesKeepTheirRowsAlike() {
        StoreConfiguration plain = parsed(Map.of("directory", "/d"));
        StoreConfiguration hot = parsed(Map.of("directory", "/d", "values", "memory"));
        assertEquals(TableModes.AUTO, plain.modes());
        assertEquals(plain.storeParameters(), hot.storeParameters(), "they share a store");
        assertNotEquals(plain, hot);
        assertTrue(plain.keepsRowsAs(hot) && hot.keepsRowsAs(plain) && hot.keepsRowsAs(hot));
        assertFalse(hot.keepsRowsAs(parsed(Map.of("directory", "/e", "values", "memory"))));
        assertFalse(hot.keepsRowsAs(parsed(Map.of("directory", "/d", "values", "memory", "durability", "sync"))));
        assertFalse(hot.keepsRowsAs(parsed(Map.of("directory", "/d", "values", "memory", "cache", "1MiB"))));
    }

    private static StoreConfiguration parsed(Map<String, String> parameters) {
        return StoreConfiguration.parse(new HashMap<>(parameters));
    }

    @Test
    void whatMakesNoSenseIsRefusedWithWhatDoes() {
        assertRefused(Map.of("durabilty", "sync"), "durabilty", "durability");
        assertRefused(Map.of("durability", "batch"), "batch", "interval or sync");
        assertRefused(Map.of("interval", "10"), "interval = 10", "10s");
        assertRefused(Map.of("interval", "0s"), "interval = 0s", "10s");
        assertRefused(Map.of("cache", "many"), "cache = many", "256MiB");
        assertRefused(Map.of("store", "lmdb", "cache", "1MiB"), "cache", "lmdb has none");
        assertRefused(Map.of("memory", "all"), "memory = all", "256MiB");
        assertRefused(Map.of("store", "rocksdb", "memory", "1GiB"), "memory", "rocksdb has no such bound");
        assertRefused(Map.of("index", "hash"), "index = hash", "lmdb or lsm");
        assertRefused(Map.of("store", "rocksdb", "index", "lsm"), "index", "rocksdb has one kind of index");
        assertRefused(Map.of("index", "lmdb", "inline_bytes", "64"), "inline_bytes = 64", "index: lmdb");
        assertRefused(Map.of("store", "rocksdb", "inline_bytes", "64"), "inline_bytes = 64", "rocksdb");
        assertRefused(Map.of("index", "lsm", "inline_bytes", "1025"), "inline_bytes = 1025", "1024 or less");
        assertRefused(Map.of("index", "lmdb", "block_compression", "lz4"), "block_compression = lz4", "index: lmdb");
        assertRefused(Map.of("store", "rocksdb", "block_compression", "lz4"), "block_compression = lz4", "rocksdb");
        assertRefused(Map.of("block_compression", "gzip"), "block_compression = gzip", "none, lz4 or zstd");
        assertRefused(Map.of("keys", "ram"), "keys = ram", "auto, memory or disk");
        assertRefused(Map.of("values", ""), "values = ", "auto, memory or disk");
        assertRefused(Map.of("keys", "disk", "values", "memory"), "keys = disk", "leave out values: memory");
        assertRefused(Map.of("keys", "disk", "index", "lmdb"), "keys = disk", "leave out index: lmdb");
        assertRefused(Map.of("store", "rocksdb", "values", "disk"), "values = disk", "rocksdb has no such choice");
        assertRefused(Map.of("store", "redis", "keys", "auto"), "keys = auto", "redis has no such choice");
        assertRefused(Map.of("value", "disk"), "[value]", "values");
        assertRefused(Map.of("max_open_files", "7"), "max_open_files = 7", "8 or more");
        assertRefused(Map.of("max_open_files", "many"), "max_open_files = many", "8 or more");
        assertRefused(Map.of("store", "rocksdb", "max_open_files", "64"), "max_open_files", "rocksdb has no such bound");
        assertRefused(Map.of("store", "mysql", "password", "secret"), "password_file");
        assertRefused(Map.of("store", "mysql", "interval", "1s"), "interval = 1s", "the server's own configuration");
        assertRefused(Map.of("store", "redis", "database", "ours"), "[database]", "name");
        assertRefused(Map.of("store", "mysql", "timeout", "3"), "timeout = 3", "10s");
        assertRefused(Map.of("store", "rocksdb", "host", "db.example"), "[host] with store: rocksdb");
    }

    private static Memtable.Factory factory(Map<String, String> parameters) {
        return AiodbMemtable.factory(new HashMap<>(parameters));
    }

    private static void assertRefused(Map<String, String> parameters, String... words) {
        Map<String, String> all = new HashMap<>(parameters);
        all.put("directory", "/disk/rows");
        String message = assertThrows(ConfigurationException.class, () -> StoreConfiguration.parse(all))
                .getMessage();
        for (String word : words) {
            assertTrue(message.contains(word), message);
        }
    }
}
