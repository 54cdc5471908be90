package io.aiodb.store.rocksdb;

import io.aiodb.store.PlacedTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.Objects;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDBException;

/** A table of a {@link RocksStore}. */
final class RocksTable extends PlacedTable<RocksStore, RocksFamilies.Family> {
    RocksTable(RocksStore store, String name, RocksFamilies.Family family) {
        super(store, name, family);
    }

    @Override
    public byte[] get(byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> store.families().db.get(place().handle, key));
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(() -> new RocksRows(store, place(), new ReadOptions(), range));
    }

    @Override
    public long estimatedRows() {
        return store.call(this::countRows);
    }

    @Override
    public void truncate() {
        store.callAlone(() -> {
            RocksFamilies.Family old = place();
            setPlace(store.families().create(name()));
            store.families().drop(old);
            return null;
        });
    }

    @Override
    public void drop() {
        store.callAlone(() -> {
            store.families().drop(place());
            store.forget(this);
            return null;
        });
    }

    long countRows() throws RocksDBException {
        return store.families().db.getLongProperty(place().handle, "rocksdb.estimate-num-keys");
    }
}
