package io.aiodb.cassandra.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.compaction.UpdateMerger;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.Stores;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which updates are on the disk when their write returns. */
class DurableUpdateTest {
    private static final int LARGE = 1 << 20;

    private final TableMetadata table = Schema.flat().build();

    /** The calls of the store, by which rows have reached the disk, or not. */
    private final List<String> calls = new ArrayList<>();

    @TempDir
    Path directory;

    /** A lightweight transaction is noted as committed after its update has returned, so then it must be on the disk. */
    @Test
    void atSyncAnUpdateIsOnTheDiskWhenItReturns() {
        try (Store store = recording(Stores.open("aiodb", directory, Map.of("segment_bytes", "1048576")))) {
            StoreConfiguration configuration = new StoreConfiguration("aiodb", directory, Durability.SYNC, Map.of());
            StoredTable storedTable =
                    StoredTables.attach(new OpenStore(configuration, store, UpdateMerger::merge), table.id);
            for (String value : List.of("x", "y", "z".repeat(LARGE))) {
                for (int row = 0; row < 2; row++) {
                    PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1).timestamp(calls.size() + 1);
                    update.row("a" + row).add("v", value).add("w", value);
                    calls.clear();
                    UpdateWriter.write(update.build(), storedTable, Durability.SYNC);
                    assertTrue(List.of("write SYNC", "sync").contains(calls.get(calls.size() - 1)), calls.toString());
                }
            }
            calls.clear();
            PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1);
            update.row("a").add("v", "x");
            UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
            assertEquals(List.of("write INTERVAL"), calls);
            assertFalse(calls.contains("sync"));
        }
    }

    private Store recording(Store store) {
        return (Store) Proxy.newProxyInstance(
                Store.class.getClassLoader(), new Class<?>[] {Store.class}, (proxy, method, arguments) -> {
                    try {
                        Object result = method.invoke(store, arguments);
                        if (method.getName().equals("write")) {
                            calls.add("write " + arguments[1]);
                        } else if (method.getName().equals("sync")) {
                            calls.add("sync");
                        }
                        return result;
                    } catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                });
    }
}
