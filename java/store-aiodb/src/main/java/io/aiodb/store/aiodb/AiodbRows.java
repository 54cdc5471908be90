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

    /** Where the value of the current row begins, and its key, which lies before it. */
    private int valueStart;
    private int keyStart;
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
        keyStart = rows.position();
        valueStart = keyStart + keyLength;
        rows.position(valueStart + valueLength);
        return true;
    }

    @Override
    public ByteBuffer key() {
        return rows == null ? Buffers.NOTHING : part(keyStart, valueStart);
    }

    @Override
    public ByteBuffer value() {
        return rows == null ? Buffers.NOTHING : part(valueStart, rows.position());
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        closing.clean();
        replace(null);
    }

    private ByteBuffer part(int start, int end) {
        return rows.slice(start, end - start).asReadOnlyBuffer();
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
        // Nothing of what it was used for before, should the call fail.
        replace(store.buffers().take(nextBytes).limit(0));
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
