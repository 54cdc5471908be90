package io.aiodb.cassandra;

import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** A store that is opened and closed by a test, without a node. */
final class TemporaryStore implements AutoCloseable {
    private final Path directory;
    private final AtomicInteger room = new AtomicInteger(Integer.MAX_VALUE);
    private OpenStore open;

    TemporaryStore(Path directory) {
        this.directory = directory;
        open = openAgain();
    }

    OpenStore open() {
        return open;
    }

    /** Ends the store and begins anew, as a restart of the node does. */
    OpenStore restart() {
        open.store().close();
        open = openAgain();
        return open;
    }

    private OpenStore openAgain() {
        StoreConfiguration configuration = new StoreConfiguration("aiodb", directory, Durability.INTERVAL, Map.of());
        Store store = Stores.open("aiodb", directory, Map.of("segment_bytes", "1048576"));
        return new OpenStore(configuration, refusing(store), UpdateMerger::merge);
    }

    /** Has all batches refused after so many, as a full store does. */
    void refuseBatchesAfter(int batches) {
        room.set(batches);
    }

    private Store refusing(Store store) {
        InvocationHandler refusing = (proxy, method, arguments) -> {
            if (method.getName().equals("write") && room.getAndDecrement() <= 0) {
                throw new StoreException.Full("no room");
            }
            try {
                return method.invoke(store, arguments);
            } catch (InvocationTargetException failure) {
                throw failure.getCause();
            }
        };
        return (Store) Proxy.newProxyInstance(Store.class.getClassLoader(), new Class<?>[] {Store.class}, refusing);
    }

    @Override
    public void close() {
        open.store().close();
    }
}
