package io.aiodb.store.rocksdb;

import io.aiodb.store.Places;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import org.rocksdb.ReadOptions;

/** A snapshot of a {@link RocksStore}, with the column families that its tables had. */
final class RocksSnapshot implements Snapshot {
    private final RocksStore store;
    private final org.rocksdb.Snapshot snapshot;
    private final Places<RocksTable, RocksFamilies.Family> families;
    private final Runnable releasing = this::free;
    private boolean closed;

    /** Made in a call of the store. */
    RocksSnapshot(RocksStore store, Places<RocksTable, RocksFamilies.Family> families) {
        this.store = store;
        this.families = families;
        this.snapshot = store.families().db.getSnapshot();
        families.all().forEach(RocksFamilies.Family::use);
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
            families.all().forEach(RocksFamilies.Family::release);
        }
    }

    private RocksFamilies.Family family(Table table) {
        if (closed) {
            throw new StoreException.Closed("the snapshot was closed");
        }
        return families.of(store.own(table));
    }
}
