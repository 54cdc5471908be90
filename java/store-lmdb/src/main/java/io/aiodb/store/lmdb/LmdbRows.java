package io.aiodb.store.lmdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.CopiedRows;
import io.aiodb.store.Range;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;
import org.lmdbjava.Cursor;
import org.lmdbjava.GetOp;
import org.lmdbjava.Txn;

/** A scan of an {@link LmdbStore}. Rows are copied: what LMDB shows lies in its map, which goes with the store. */
final class LmdbRows extends CopiedRows {
    private final LmdbStore store;
    private final Cursor<byte[]> cursor;

    /** The scan's own transaction; null if it is that of a snapshot. */
    private final Txn<byte[]> own;

    /** Whom all users of the transaction lock: one thread at a time may use it. */
    private final Object user;

    private final Runnable releasing = this::free;
    private boolean started;

    /** With a transaction of its own. Made in a call of the store. */
    LmdbRows(LmdbStore store, Cursor<byte[]> cursor, Txn<byte[]> own, Range range) {
        this(store, cursor, own, new Object(), range);
    }

    /** In a snapshot's transaction. Made in a call of the store. */
    LmdbRows(LmdbStore store, Cursor<byte[]> cursor, LmdbSnapshot snapshot, Range range) {
        this(store, cursor, null, snapshot, range);
    }

    private LmdbRows(LmdbStore store, Cursor<byte[]> cursor, Txn<byte[]> own, Object user, Range range) {
        super(range);
        this.store = store;
        this.cursor = cursor;
        this.own = own;
        this.user = user;
        if (own != null) {
            store.open().add(releasing);
        }
    }

    @Override
    public boolean next() {
        synchronized (user) {
            return store.call(this::step);
        }
    }

    @Override
    public void close() {
        synchronized (user) {
            store.release(releasing);
        }
    }

    /** Called when nobody else uses the transaction. */
    void free() {
        if (setClosed()) {
            store.open().remove(releasing);
            cursor.close();
            if (own != null) {
                own.close();
            }
        }
    }

    private boolean step() {
        checkOpen();
        if (left() == 0) {
            return false;
        }
        boolean found = started ? move() : range.isBackward() ? toLast() : toFirst();
        started = true;
        if (!found) {
            return end();
        }
        ByteBuffer here = ByteBuffer.wrap(cursor.key());
        return range.isBeforeEnd(here) ? show(here, range.isKeysOnly() ? null : cursor.val()) : end();
    }

    private boolean move() {
        return range.isBackward() ? cursor.prev() : cursor.next();
    }

    private boolean toFirst() {
        Optional<ByteBuffer> lower = range.lower().filter(ByteBuffer::hasRemaining);
        boolean found = lower.isEmpty() ? cursor.first() : cursor.get(searched(lower.get()), GetOp.MDB_SET_RANGE);
        return found && !range.isAboveLower(ByteBuffer.wrap(cursor.key())) ? cursor.next() : found;
    }

    private boolean toLast() {
        Optional<ByteBuffer> upper = range.upper();
        if (upper.isEmpty()) {
            return cursor.last();
        }
        if (!upper.get().hasRemaining()) {
            // No key is as short as that.
            return false;
        }
        if (!cursor.get(searched(upper.get()), GetOp.MDB_SET_RANGE)) {
            return cursor.last();
        }
        return range.isBelowUpper(ByteBuffer.wrap(cursor.key())) || cursor.prev();
    }

    /** LMDB searches for nothing longer than its keys; the range itself leaves out what that finds too early. */
    private static byte[] searched(ByteBuffer bound) {
        byte[] bytes = Bytes.of(bound);
        return Arrays.copyOf(bytes, Math.min(bytes.length, LmdbStore.MAX_KEY_BYTES));
    }
}
