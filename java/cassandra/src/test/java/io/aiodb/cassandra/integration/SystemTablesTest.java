package io.aiodb.cassandra.integration;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.AiodbMemtable;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.cassandra.config.InheritingClass;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.junit.jupiter.api.Test;

class SystemTablesTest {
    private static final InheritingClass AIODB = new InheritingClass(null, AiodbMemtable.class.getName(), Map.of());
    private static final InheritingClass SKIPLIST = new InheritingClass(null, "SkipListMemtable", Map.of());

    @Test
    void theDefaultIsNoStore() {
        assertRefused(Map.of("default", AIODB), "default: is of class", "WITH memtable = 'aiodb'");
        assertRefused(Map.of("default", inherits("mine"), "mine", AIODB), "default: inherits mine", "WITH memtable = 'mine'");
        assertRefused(
                Map.of("default", inherits("other"), "other", inherits("mine"), "mine", AIODB),
                "default: inherits mine",
                "default: inherits: skiplist");
    }

    @Test
    void anyOtherDefaultWill() {
        requireOtherDefault(null);
        requireOtherDefault(Map.of("aiodb", AIODB));
        requireOtherDefault(Map.of("default", inherits("skiplist"), "skiplist", SKIPLIST, "aiodb", AIODB));
        requireOtherDefault(Map.of("default", inherits("default"), "aiodb", AIODB));
    }

    private static void requireOtherDefault(Map<String, InheritingClass> configurations) {
        SystemTables.requireOtherDefault(configurations, AiodbMemtable.class);
    }

    private static InheritingClass inherits(String name) {
        return new InheritingClass(name, null, null);
    }

    private static void assertRefused(Map<String, InheritingClass> configurations, String... words) {
        String message = assertThrows(
                        ConfigurationException.class,
                        () -> requireOtherDefault(new LinkedHashMap<>(configurations)))
                .getMessage();
        for (String word : words) {
            assertTrue(message.contains(word), message);
        }
    }
}
