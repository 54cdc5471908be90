package io.aiodb.store.rocksdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDBException;

/** A table of a {@link RocksStore}. */
final class RocksTable implements Table {
    private final RocksStore store;
    private final String name;

    /** Null once the table was dropped. Changed by calls that run alone. */
    private RocksFamilies.Family family;

    RocksTable(RocksStore store, String name, RocksFamilies.Family family) {
        this.store = store;
        this.name = name;
        this.family = family;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Store store() {
        return store;
    }

    @Override
    public byte[] get(byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> store.families().db.get(family().handle, key));
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return Bytes.answer(get(Bytes.of(key)), value);
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(() -> new RocksRows(store, family(), new ReadOptions(), range));
    }

    @Override
    public long estimatedRows() {
        return store.call(this::countRows);
    }

    @Override
    public void truncate() {
        store.callAlone(() -> {
            RocksFamilies.Family old = family();
            family = store.families().create(name);
            store.families().drop(old);
            return null;
        });
    }

    @Override
    public void drop() {
        store.callAlone(() -> {
            store.families().drop(family());
            family = null;
            store.forget(this);
            return null;
        });
    }

    /** The table's family as it is now, for calls of the store. */
    RocksFamilies.Family family() {
        if (family == null) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`: it was dropped");
        }
        return family;
    }

    long countRows() throws RocksDBException {
        return store.families().db.getLongProperty(family().handle, "rocksdb.estimate-num-keys");
    }
}
