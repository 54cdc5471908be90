package io.aiodb.cassandra.integration;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.compaction.UpdateMerger;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.Stores;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.cassandra.config.Config.CommitLogSync;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Rows that a power cut may take, beside a commit log that promises more. */
class DurabilityWarningTest {
    private static final int LARGE = 1 << 20;

    private final TableMetadata table = Schema.flat().build();

    /** The calls of the store, by which rows have reached the disk, or not. */
    private final List<String> calls = new ArrayList<>();

    @TempDir
    Path directory;

    @Test
    void whatCanBeLostBesideASyncedCommitLogIsWarnedOf() {
        for (CommitLogSync sync : List.of(CommitLogSync.batch, CommitLogSync.group)) {
            String warning = DurabilityWarning.warning("mine", configuration(Durability.INTERVAL), sync);
            for (String word : List.of(
                    "commitlog_sync: " + sync,
                    "mine with durability: interval",
                    "lightweight transactions",
                    "give mine the parameter durability: sync")) {
                assertTrue(warning.contains(word), warning);
            }
            assertNull(DurabilityWarning.warning("mine", configuration(Durability.SYNC), sync));
        }
        assertNull(DurabilityWarning.warning("mine", configuration(Durability.INTERVAL), CommitLogSync.periodic));
    }

    private StoreConfiguration configuration(Durability durability) {
        return new StoreConfiguration("aiodb", directory, durability, Map.of());
    }

    /** A lightweight transaction is noted as committed after its update has returned, so then it must be on the disk. */
    @Test
    void atSyncAnUpdateIsOnTheDiskWhenItReturns() {
        try (Store store = recording(Stores.open("aiodb", directory, Map.of("segment_bytes", "1048576")))) {
            StoredTable storedTable =
                    StoredTables.attach(new OpenStore(configuration(Durability.SYNC), store, UpdateMerger::merge), table.id);
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
