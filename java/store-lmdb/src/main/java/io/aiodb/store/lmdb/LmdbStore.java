package io.aiodb.store.lmdb;

import io.aiodb.store.Batch;
import io.aiodb.store.Capabilities;
import io.aiodb.store.DirectoryLock;
import io.aiodb.store.Durability;
import io.aiodb.store.Lifecycle;
import io.aiodb.store.PlacedStore;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Statistics;
import io.aiodb.store.StoreException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.Stat;
import org.lmdbjava.Txn;

/**
 * An LMDB environment with a database for each table. One writer at a time, and every commit is durable: without its
 * flushes LMDB would not survive a power cut, so there is no weaker class.
 */
final class LmdbStore extends PlacedStore<LmdbTable, Dbi<byte[]>> {
    static final String NAME = "lmdb";

    /** LMDB's limit as it is usually built. */
    static final int MAX_KEY_BYTES = 511;

    private static final Capabilities CAPABILITIES = new Capabilities(
            NAME, MAX_KEY_BYTES, 1 << 30, MAX_KEY_BYTES, Set.of(Durability.SYNC), false, false, false, false, false);

    private final Lifecycle lifecycle = new Lifecycle();
    private final Env<byte[]> env;
    private final DirectoryLock lock;

    /** Snapshots and scans, whose transactions must end before the environment. */
    private final Set<Runnable> open = ConcurrentHashMap.newKeySet();

    LmdbStore(Env<byte[]> env, DirectoryLock lock) {
        super(LmdbTable.class);
        this.env = env;
        this.lock = lock;
        for (byte[] name : env.getDbiNames()) {
            String text = new String(name, StandardCharsets.UTF_8);
            tables.add(new LmdbTable(this, text, env.openDbi(name)));
        }
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    protected LmdbTable create(String name) {
        return callAlone(() -> tables.create(name, () -> {
            Dbi<byte[]> rows = env.openDbi(name.getBytes(StandardCharsets.UTF_8), DbiFlags.MDB_CREATE);
            return new LmdbTable(this, name, rows);
        }));
    }

    @Override
    protected void apply(Batch batch, Durability durability) {
        call(() -> {
            // Writes that are not committed are given up when the transaction is closed.
            try (Txn<byte[]> writing = env.txnWrite()) {
                batch.replay(new LmdbWrites(this, writing));
                writing.commit();
            }
            return null;
        });
    }

    @Override
    public Snapshot snapshot() {
        return call(() -> new LmdbSnapshot(this, tables.places()));
    }

    @Override
    public void sync() {
        call(() -> {
            env.sync(true);
            return null;
        });
    }

    @Override
    public Statistics statistics() {
        return call(() -> {
            long rows = 0;
            try (Txn<byte[]> reading = env.txnRead()) {
                for (LmdbTable table : tables.all()) {
                    rows += table.place().stat(reading).entries;
                }
            }
            Stat stat = env.stat();
            long pages = env.info().lastPageNumber + 1;
            return new Statistics(pages * stat.pageSize, rows, Map.of("pages", pages, "readers", (long) env.info().numReaders));
        });
    }

    @Override
    public void close() {
        lifecycle.close(() -> {
            List.copyOf(open).forEach(Runnable::run);
            env.close();
            lock.close();
        });
    }

    @Override
    protected <T> T look(Supplier<T> body) {
        return call(body);
    }

    <T> T call(Supplier<T> body) {
        return lifecycle.call(() -> translated(body));
    }

    <T> T callAlone(Supplier<T> body) {
        return lifecycle.callAlone(() -> translated(body));
    }

    /** Releases something, unless closing the store has done so. */
    void release(Runnable body) {
        lifecycle.release(body);
    }

    Set<Runnable> open() {
        return open;
    }

    Env<byte[]> env() {
        return env;
    }

    void forget(LmdbTable table) {
        tables.remove(table);
    }

    private static <T> T translated(Supplier<T> body) {
        try {
            return body.get();
        } catch (StoreException | NullPointerException failure) {
            throw failure;
        } catch (RuntimeException failure) {
            throw failed(failure);
        }
    }

    static StoreException failed(RuntimeException failure) {
        if (failure instanceof Env.MapFullException) {
            return new StoreException.Full("the store has reached its map_bytes: open it with more, or delete rows");
        }
        if (failure instanceof Dbi.DbFullException) {
            return new StoreException.Limit("the store has max_tables tables: open it with more");
        }
        if (failure instanceof Env.ReadersFullException) {
            return new StoreException.Limit("too many snapshots and scans are open: close those that are no longer used");
        }
        return new StoreException.Failed(String.valueOf(failure.getMessage()), failure);
    }
}
