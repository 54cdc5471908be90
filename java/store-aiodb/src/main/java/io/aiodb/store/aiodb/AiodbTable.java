package io.aiodb.store.aiodb;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;

/** A table of an {@link AiodbStore}. */
final class AiodbTable implements Table {
    private final AiodbStore store;
    private final String name;
    private final long handle;

    AiodbTable(AiodbStore store, String name, long handle) {
        this.store = store;
        this.name = name;
        this.handle = handle;
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
        return store.get(this, Native.LATEST, key);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return store.get(this, Native.LATEST, key, value);
    }

    @Override
    public Rows scan(Range range) {
        return store.scan(this, Native.LATEST, range);
    }

    @Override
    public long estimatedRows() {
        return Native.estimatedRows(store.handle(), handle);
    }

    @Override
    public void truncate() {
        Native.truncateTable(store.handle(), handle);
    }

    @Override
    public void drop() {
        store.drop(this);
    }

    long handle() {
        return handle;
    }
}
