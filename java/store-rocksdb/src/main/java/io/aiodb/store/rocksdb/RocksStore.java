package io.aiodb.store.rocksdb;

import io.aiodb.store.Batch;
import io.aiodb.store.Capabilities;
import io.aiodb.store.Durability;
import io.aiodb.store.Lifecycle;
import io.aiodb.store.PlacedStore;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Statistics;
import io.aiodb.store.StoreException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/** A RocksDB. The library does not bear being used after it was closed, so every call goes through a {@link Lifecycle}. */
final class RocksStore extends PlacedStore<RocksTable, RocksFamilies.Family> {
    static final String NAME = "rocksdb";

    /** RocksDB knows no limit for keys below 8 MiB; that of the other stores makes range deletes to the end possible. */
    static final int MAX_KEY_BYTES = 64 << 10;

    private static final Capabilities CAPABILITIES = new Capabilities(
            NAME, MAX_KEY_BYTES, 1 << 30, MAX_KEY_BYTES, Set.of(Durability.values()), true, true, true, true, false);

    private final Lifecycle lifecycle = new Lifecycle();
    private final RocksFamilies families;
    private final WriteOptions synced = new WriteOptions().setSync(true);
    private final WriteOptions unsynced = new WriteOptions().setSync(false);

    /** Snapshots and scans, which must be closed before the store. */
    private final Set<Runnable> open = ConcurrentHashMap.newKeySet();

    private final ScheduledExecutorService syncing = Executors.newSingleThreadScheduledExecutor(body -> {
        Thread thread = new Thread(body, "rocksdb-sync");
        thread.setDaemon(true);
        return thread;
    });

    /** Whether there are writes of class interval that no sync has followed. */
    private volatile boolean syncWanted;

    /** Why a sync in the background failed: nothing is accepted any more. */
    private volatile RocksDBException failure;

    RocksStore(Path directory, long intervalMillis, RocksFamilies.Settings settings) {
        super(RocksTable.class);
        families = translated(() -> new RocksFamilies(directory, settings));
        families.found.forEach((name, family) -> tables.add(new RocksTable(this, name, family)));
        long half = Math.max(1, intervalMillis / 2);
        syncing.scheduleWithFixedDelay(this::syncIfWanted, half, half, TimeUnit.MILLISECONDS);
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    protected RocksTable create(String name) {
        return lifecycle.callAlone(() ->
                tables.create(name, () -> new RocksTable(this, name, translated(() -> families.create(name)))));
    }

    @Override
    protected void apply(Batch batch, Durability durability) {
        WriteOptions options = durability == Durability.SYNC ? synced : unsynced;
        call(() -> {
            if (failure != null) {
                throw new StoreException.Failed(
                        "the store no longer accepts writes because a sync failed: open it again", failure);
            }
            try (WriteBatch writes = new WriteBatch()) {
                batch.replay(new RocksWrites(this, writes));
                families.db.write(options, writes);
            }
            if (durability == Durability.INTERVAL) {
                syncWanted = true;
            }
            return null;
        });
    }

    @Override
    public Snapshot snapshot() {
        return call(() -> new RocksSnapshot(this, tables.places()));
    }

    @Override
    public void sync() {
        call(() -> {
            families.db.syncWal();
            return null;
        });
    }

    @Override
    public Statistics statistics() {
        return call(() -> {
            long disk = 0;
            long rows = 0;
            for (RocksTable table : tables.all()) {
                disk += families.db.getLongProperty(table.place().handle, "rocksdb.total-sst-files-size");
                rows += table.countRows();
            }
            long live = families.db.getAggregatedLongProperty("rocksdb.estimate-live-data-size");
            long memory = families.db.getAggregatedLongProperty("rocksdb.cur-size-all-mem-tables");
            // Writes that are still in memory lie in the log, too.
            return new Statistics(disk + memory, rows, Map.of("live_bytes", live, "memtable_bytes", memory));
        });
    }

    @Override
    public void close() {
        lifecycle.close(() -> {
            syncing.shutdownNow();
            RocksDBException lost = null;
            try {
                families.db.syncWal();
            } catch (RocksDBException unsynced) {
                lost = unsynced;
            }
            List.copyOf(open).forEach(Runnable::run);
            tables.all().forEach(table -> table.place().release());
            synced.close();
            unsynced.close();
            families.close();
            if (lost != null) {
                throw failed(lost);
            }
        });
    }

    @Override
    protected <T> T look(Supplier<T> body) {
        return lifecycle.call(body);
    }

    /** Something that RocksDB does. */
    interface Action<T> {
        T run() throws RocksDBException;
    }

    <T> T call(Action<T> action) {
        return lifecycle.call(() -> translated(action));
    }

    <T> T callAlone(Action<T> action) {
        return lifecycle.callAlone(() -> translated(action));
    }

    /** Releases something, unless closing the store has done so. */
    void release(Runnable body) {
        lifecycle.release(body);
    }

    Set<Runnable> open() {
        return open;
    }

    RocksFamilies families() {
        return families;
    }

    void forget(RocksTable table) {
        tables.remove(table);
    }

    private void syncIfWanted() {
        lifecycle.release(() -> {
            if (!syncWanted || failure != null) {
                return;
            }
            syncWanted = false;
            try {
                families.db.syncWal();
            } catch (RocksDBException unknownOutcome) {
                failure = unknownOutcome;
            }
        });
    }

    static <T> T translated(Action<T> action) {
        try {
            return action.run();
        } catch (RocksDBException failure) {
            throw failed(failure);
        }
    }

    private static StoreException failed(RocksDBException failure) {
        String message = String.valueOf(failure.getMessage());
        if (failure.getStatus() == null) {
            return new StoreException.Failed(message, failure);
        }
        return switch (failure.getStatus().getCode()) {
            case Corruption -> new StoreException.Corruption(message);
            case IOError -> {
                if (failure.getStatus().getSubCode() == org.rocksdb.Status.SubCode.NoSpace) {
                    yield new StoreException.Full(message);
                }
                yield message.contains("lock") ? new StoreException.InUse(message) : new StoreException.Failed(message, failure);
            }
            default -> new StoreException.Failed(message, failure);
        };
    }
}
