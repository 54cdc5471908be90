package io.aiodb.cassandra;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;

/** A store that ends all scans and snapshots when a test wants it to, as stores do that can no longer afford them. */
final class EndingStore {
    private final Store store;
    private final Store seen;
    private final Thread test = Thread.currentThread();
    private BooleanSupplier wanted = () -> false;
    private int ends;

    EndingStore(Store store) {
        this.store = store;
        this.seen = proxy(Store.class, this::ofStore);
    }

    /** What takes the place of the store. */
    Store seen() {
        return seen;
    }

    /** Asks, when this thread wants the next row of a scan, whether all that were opened before end now. */
    void endWhere(BooleanSupplier asked) {
        wanted = asked;
    }

    private boolean isEnded(int opened) {
        if (Thread.currentThread() != test) {
            return false;
        }
        BooleanSupplier asked = wanted;
        // What it does reads as well.
        wanted = () -> false;
        if (asked.getAsBoolean()) {
            ends++;
        }
        wanted = asked;
        return opened != ends;
    }

    private Object ofStore(Object self, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "write" -> {
                store.write(own((Batch) arguments[0]), (Durability) arguments[1]);
                return null;
            }
            case "snapshot" -> {
                return snapshot(store.snapshot(), ends);
            }
            default -> {
                Object result = call(store, method, arguments);
                return result instanceof Table table ? new Seen(table).proxy : result;
            }
        }
    }

    private Snapshot snapshot(Snapshot real, int opened) {
        return proxy(Snapshot.class, (self, method, arguments) -> {
            if (method.getName().equals("scan")) {
                return rows(real.scan(own((Table) arguments[0]), (Range) arguments[1]), opened);
            }
            if (method.getName().equals("get")) {
                arguments[0] = own((Table) arguments[0]);
            }
            return call(real, method, arguments);
        });
    }

    private Rows rows(Rows real, int opened) {
        return proxy(Rows.class, (self, method, arguments) -> {
            if (method.getName().equals("next") && isEnded(opened)) {
                throw new StoreException.SnapshotEnded("the test has ended it");
            }
            return call(real, method, arguments);
        });
    }

    private final class Seen implements InvocationHandler {
        private final Table real;
        private final Table proxy;

        Seen(Table real) {
            this.real = real;
            this.proxy = proxy(Table.class, this);
        }

        @Override
        public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
            return switch (method.getName()) {
                case "scan" -> rows(real.scan((Range) arguments[0]), ends);
                case "store" -> seen;
                default -> call(real, method, arguments);
            };
        }
    }

    private static Table own(Table table) {
        return ((Seen) Proxy.getInvocationHandler(table)).real;
    }

    private static Batch own(Batch batch) {
        Batch own = new Batch();
        batch.replay(new Batch.Visitor() {
            @Override
            public void put(Table table, ByteBuffer key, ByteBuffer value) {
                own.put(own(table), key, value);
            }

            @Override
            public void delete(Table table, ByteBuffer key) {
                own.delete(own(table), key);
            }

            @Override
            public void append(Table table, ByteBuffer key, ByteBuffer operand) {
                own.append(own(table), key, operand);
            }

            @Override
            public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
                own.deleteRange(own(table), from, to);
            }
        });
        return own;
    }

    private static Object call(Object real, Method method, Object[] arguments) throws Throwable {
        try {
            return method.invoke(real, arguments);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
    }

    private static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(EndingStore.class.getClassLoader(), new Class<?>[] {type}, handler));
    }
}
