package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.cassandra.AiodbMemtable;
import java.util.Map;
import org.apache.cassandra.config.InheritingClass;
import org.junit.jupiter.api.Test;

class ConfiguredStoresTest {
    @Test
    void storesOfThisKindCountOnceForTheirDirectories() {
        assertEquals(0, ConfiguredStores.count(null));
        InheritingClass skiplist = new InheritingClass(null, "SkipListMemtable", Map.of());
        InheritingClass aiodb = aiodb(Map.of());
        assertEquals(0, ConfiguredStores.count(Map.of("skiplist", skiplist)));
        assertEquals(1, ConfiguredStores.count(Map.of("skiplist", skiplist, "aiodb", aiodb)));
        InheritingClass synced = new InheritingClass("aiodb", null, Map.of("durability", "sync"));
        assertEquals(1, ConfiguredStores.count(Map.of("aiodb", aiodb, "synced", synced)));
        InheritingClass apart = new InheritingClass("aiodb", null, Map.of("directory", "/disk2/rows"));
        assertEquals(2, ConfiguredStores.count(Map.of("aiodb", aiodb, "synced", synced, "apart", apart)));
        InheritingClass same = new InheritingClass("aiodb", null, Map.of("directory", "/disk2/./old/../rows/"));
        assertEquals(2, ConfiguredStores.count(Map.of("aiodb", aiodb, "apart", apart, "same", same)));
        InheritingClass sized = new InheritingClass("aiodb", null, Map.of("directory", "/disk3/rows", "memory", "2GiB"));
        assertEquals(2, ConfiguredStores.count(Map.of("aiodb", aiodb, "apart", apart, "sized", sized)), "it has its own");
        InheritingClass redis = aiodb(Map.of("store", "redis", "directory", "/disk3"));
        assertEquals(1, ConfiguredStores.count(Map.of("aiodb", aiodb, "redis", redis)));
        InheritingClass circular = new InheritingClass("circular", null, Map.of());
        assertEquals(1, ConfiguredStores.count(Map.of("aiodb", aiodb, "circular", circular)));
    }

    private static InheritingClass aiodb(Map<String, String> parameters) {
        return new InheritingClass(null, AiodbMemtable.class.getName(), parameters);
    }
}
