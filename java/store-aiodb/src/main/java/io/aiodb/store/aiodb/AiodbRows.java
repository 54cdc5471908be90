package io.aiodb.store.aiodb;

import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;

/** A scan of an {@link AiodbStore}: many rows for one crossing. */
final class AiodbRows implements Rows {
    private final AiodbStore store;
    private final long handle;
    private final Cleaner.Cleanable closing;

    /** The rows here: the lengths of key and value, the key, the value, and the next. Null before the first. */
    private ByteBuffer rows;

    private ByteBuffer key = Buffers.NOTHING;
    private ByteBuffer value = Buffers.NOTHING;
    private int nextBytes = Buffers.FIRST_ROWS_BYTES;
    private boolean ended;
    private boolean closed;

    AiodbRows(AiodbStore store, long handle) {
        this.store = store;
        this.handle = handle;
        long storeHandle = store.handle();
        this.closing = store.closeWith(this, () -> Native.closeScan(storeHandle, handle));
    }

    @Override
    public boolean next() {
        if (closed) {
            throw new StoreException.Closed("the scan was closed");
        }
        if (ended || (rows == null || !rows.hasRemaining()) && !fetched()) {
            return false;
        }
        int keyLength = rows.getInt();
        int valueLength = rows.getInt();
        key = take(keyLength);
        value = take(valueLength);
        return true;
    }

    @Override
    public ByteBuffer key() {
        return key.duplicate();
    }

    @Override
    public ByteBuffer value() {
        return value.duplicate();
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        closing.clean();
        key = Buffers.NOTHING;
        value = Buffers.NOTHING;
        replace(null);
    }

    private ByteBuffer take(int length) {
        ByteBuffer taken = rows.slice(rows.position(), length).asReadOnlyBuffer();
        rows.position(rows.position() + length);
        return taken;
    }

    private boolean fetched() {
        try {
            return fetch();
        } finally {
            // Until the call ends, this is not what nobody refers to.
            Reference.reachabilityFence(this);
        }
    }

    /** Brings the next rows. False at the end. */
    private boolean fetch() {
        replace(store.buffers().take(nextBytes));
        nextBytes = Math.min(2 * nextBytes, Buffers.ROWS_BYTES);
        long filled = Native.next(store.handle(), handle, rows);
        if (filled < 0) {
            // Not even the next row fits: it gets a buffer of its own.
            replace(Buffers.direct(Math.toIntExact(-filled)));
            filled = Native.next(store.handle(), handle, rows);
        }
        rows.clear().limit(Math.toIntExact(filled));
        ended = filled == 0;
        return !ended;
    }

    private void replace(ByteBuffer buffer) {
        if (rows != null) {
            store.buffers().giveBack(rows);
        }
        rows = buffer;
    }
}
