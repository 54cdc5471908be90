package io.aiodb.cassandra.integration;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.AiodbFactory;
import io.aiodb.cassandra.AiodbMemtable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.table.StoreConfiguration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.config.InheritingClass;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
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
        SystemTables.requireOtherDefault(null, AiodbMemtable.class);
        SystemTables.requireOtherDefault(Map.of("aiodb", AIODB), AiodbMemtable.class);
        SystemTables.requireOtherDefault(Map.of("default", inherits("skiplist"), "skiplist", SKIPLIST, "aiodb", AIODB), AiodbMemtable.class);
        SystemTables.requireOtherDefault(Map.of("default", inherits("default"), "aiodb", AIODB), AiodbMemtable.class);
    }

    @Test
    void noSystemTableGetsAMemtableHere() {
        Schema.table();
        Map<String, String> parameters = new HashMap<>(Map.of("directory", "/nowhere/rows"));
        AiodbFactory factory = new AiodbFactory(StoreConfiguration.parse(parameters));
        for (String keyspace : new String[] {"system", "system_schema", "system_auth", "system_traces", "system_distributed"}) {
            TableMetadata table = TableMetadata.builder(keyspace, "rows")
                    .partitioner(Murmur3Partitioner.instance)
                    .addPartitionKeyColumn("p", Int32Type.instance)
                    .build();
            TableMetadataRef reference = TableMetadataRef.forOfflineTools(table);
            String message = assertThrows(
                            ConfigurationException.class,
                            () -> factory.create(new AtomicReference<>(), reference, null))
                    .getMessage();
            assertTrue(message.contains("the system table " + keyspace + ".rows"), message);
        }
    }

    private static InheritingClass inherits(String name) {
        return new InheritingClass(name, null, null);
    }

    private static void assertRefused(Map<String, InheritingClass> configurations, String... words) {
        String message = assertThrows(
                        ConfigurationException.class,
                        () -> SystemTables.requireOtherDefault(new LinkedHashMap<>(configurations), AiodbMemtable.class))
                .getMessage();
        for (String word : words) {
            assertTrue(message.contains(word), message);
        }
    }
}
