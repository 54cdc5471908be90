package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.table.StoreConfiguration;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.junit.jupiter.api.Test;

class AiodbFactoryTest {
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
}
