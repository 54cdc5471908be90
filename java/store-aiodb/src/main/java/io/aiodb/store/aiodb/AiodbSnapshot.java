package io.aiodb.store.aiodb;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Table;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;

/** A snapshot of an {@link AiodbStore}. */
final class AiodbSnapshot implements Snapshot {
    private final AiodbStore store;
    private final long handle;
    private final Cleaner.Cleanable closing;

    AiodbSnapshot(AiodbStore store, long handle) {
        this.store = store;
        this.handle = handle;
        long storeHandle = store.handle();
        this.closing = store.closeWith(this, () -> Native.closeSnapshot(storeHandle, handle));
    }

    @Override
    public byte[] get(Table table, byte[] key) {
        try {
            return store.get(store.own(table), handle, key);
        } finally {
            // Until the call ends, this is not what nobody refers to.
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public int get(Table table, ByteBuffer key, ByteBuffer value) {
        try {
            return store.get(store.own(table), handle, key, value);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public Rows scan(Table table, Range range) {
        try {
            return store.scan(store.own(table), handle, range);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    @Override
    public void close() {
        closing.clean();
    }
}
