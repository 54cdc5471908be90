package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.Stores;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OpenStoreTest {
    private final AtomicInteger counts = new AtomicInteger();

    @TempDir
    Path directory;

    /** Each table has gauges of its own for what the store counts, and counting goes through all tables. */
    @Test
    void gaugesThatAreReadTogetherCountOnce() {
        try (Store store = counting(Stores.open("aiodb", directory, Map.of("segment_bytes", "65536")))) {
            StoreConfiguration configuration =
                    new StoreConfiguration("aiodb", directory, Durability.INTERVAL, Map.of());
            OpenStore open = new OpenStore(configuration, store, request -> {});
            for (int gauge = 0; gauge < 1000; gauge++) {
                open.statistics(gauge);
            }
            assertEquals(1, counts.get());
            open.statistics(OpenStore.STATISTICS_NANOS);
            assertEquals(1, counts.get());
            open.statistics(OpenStore.STATISTICS_NANOS + 1);
            assertEquals(2, counts.get());
        }
    }

    private Store counting(Store store) {
        return (Store) Proxy.newProxyInstance(
                Store.class.getClassLoader(), new Class<?>[] {Store.class}, (proxy, method, arguments) -> {
                    counts.addAndGet(method.getName().equals("statistics") ? 1 : 0);
                    try {
                        return method.invoke(store, arguments);
                    } catch (InvocationTargetException failure) {
                        throw failure.getCause();
                    }
                });
    }
}
