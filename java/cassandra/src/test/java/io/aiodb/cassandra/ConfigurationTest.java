package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Durability;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.db.memtable.Memtable;
import org.junit.jupiter.api.Test;

class ConfigurationTest {
    @Test
    void allParametersAreTaken() {
        Map<String, String> parameters = new HashMap<>(Map.of(
                "store", "aiodb",
                "durability", "sync",
                "interval", "500ms",
                "directory", "/disk/rows",
                "cache", "64MiB"));
        Configuration parsed = Configuration.parse(parameters);
        assertTrue(parameters.isEmpty());
        assertEquals(Durability.SYNC, parsed.durability());
        assertEquals(Path.of("/disk/rows"), parsed.directory());
        assertEquals(Map.of("interval_millis", "500", "cache_bytes", "67108864"), parsed.storeParameters());
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
    void whatMakesNoSenseIsRefusedWithWhatDoes() {
        assertRefused(Map.of("durabilty", "sync"), "durabilty", "durability");
        assertRefused(Map.of("durability", "batch"), "batch", "interval or sync");
        assertRefused(Map.of("interval", "10"), "interval = 10", "10s");
        assertRefused(Map.of("interval", "0s"), "interval = 0s", "10s");
        assertRefused(Map.of("cache", "many"), "cache = many", "256MiB");
        assertRefused(Map.of("store", "lmdb", "cache", "1MiB"), "cache", "lmdb has none");
    }

    private static Memtable.Factory factory(Map<String, String> parameters) {
        return AiodbMemtable.factory(new HashMap<>(parameters));
    }

    private static void assertRefused(Map<String, String> parameters, String... words) {
        Map<String, String> all = new HashMap<>(parameters);
        all.put("directory", "/disk/rows");
        String message = assertThrows(ConfigurationException.class, () -> Configuration.parse(all))
                .getMessage();
        for (String word : words) {
            assertTrue(message.contains(word), message);
        }
    }
}
