package io.aiodb.store.rocksdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.rocksdb.ReadOptions;

/** A snapshot of a {@link RocksStore}, with the column families that its tables had. */
final class RocksSnapshot implements Snapshot {
    private final RocksStore store;
    private final org.rocksdb.Snapshot snapshot;
    private final Map<RocksTable, RocksFamilies.Family> families = new HashMap<>();
    private final Runnable releasing = this::free;
    private boolean closed;

    /** Made in a call of the store. */
    RocksSnapshot(RocksStore store, List<RocksTable> tables) {
        this.store = store;
        this.snapshot = store.families().db.getSnapshot();
        tables.forEach(table -> families.put(table, table.family().use()));
        store.open().add(releasing);
    }

    @Override
    public synchronized byte[] get(Table table, byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> {
            try (ReadOptions options = new ReadOptions().setSnapshot(snapshot)) {
                return store.families().db.get(family(table).handle, options, key);
            }
        });
    }

    @Override
    public int get(Table table, ByteBuffer key, ByteBuffer value) {
        return Bytes.answer(get(table, Bytes.of(key)), value);
    }

    @Override
    public synchronized Rows scan(Table table, Range range) {
        return store.call(() -> new RocksRows(
                store, family(table), new ReadOptions().setSnapshot(snapshot), range));
    }

    @Override
    public synchronized void close() {
        store.release(releasing);
    }

    private void free() {
        if (!closed) {
            closed = true;
            store.open().remove(releasing);
            store.families().db.releaseSnapshot(snapshot);
            families.values().forEach(RocksFamilies.Family::release);
        }
    }

    private RocksFamilies.Family family(Table table) {
        if (closed) {
            throw new StoreException.Closed("the snapshot was closed");
        }
        RocksTable own = store.own(table);
        own.family();
        RocksFamilies.Family family = families.get(own);
        if (family == null) {
            throw new StoreException.NoSuchTable("the table `" + table.name() + "` is younger than the snapshot");
        }
        return family;
    }
}
