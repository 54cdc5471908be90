package io.aiodb.store.rocksdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksIterator;

/** A scan of a {@link RocksStore}: one crossing, or two, for each row. */
final class RocksRows implements Rows {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0).asReadOnlyBuffer();

    private final RocksStore store;
    private final RocksFamilies.Family family;
    private final ReadOptions options;
    private final RocksIterator iterator;
    private final Range range;
    private final Runnable releasing = this::free;
    private long left;
    private boolean started;
    private boolean closed;
    private ByteBuffer key = NOTHING;
    private ByteBuffer value = NOTHING;

    /** Made in a call of the store. */
    RocksRows(RocksStore store, RocksFamilies.Family family, ReadOptions options, Range range) {
        this.store = store;
        this.family = family.use();
        this.options = options;
        this.range = range;
        this.left = range.limit();
        this.iterator = store.families().db.newIterator(family.handle, options);
        store.open().add(releasing);
    }

    @Override
    public synchronized boolean next() {
        if (closed) {
            throw new StoreException.Closed("the scan was closed");
        }
        return store.call(() -> {
            if (left == 0) {
                return false;
            }
            step();
            if (!iterator.isValid()) {
                left = 0;
                iterator.status();
                return false;
            }
            ByteBuffer found = ByteBuffer.wrap(iterator.key()).asReadOnlyBuffer();
            boolean within = range.isBackward() ? range.isAboveLower(found) : range.isBelowUpper(found);
            if (!within) {
                left = 0;
                return false;
            }
            left--;
            key = found;
            value = range.isKeysOnly() ? NOTHING : ByteBuffer.wrap(iterator.value()).asReadOnlyBuffer();
            return true;
        });
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
    public synchronized void close() {
        store.release(releasing);
    }

    private void step() {
        if (started) {
            if (range.isBackward()) {
                iterator.prev();
            } else {
                iterator.next();
            }
            return;
        }
        started = true;
        if (range.isBackward()) {
            range.upper().ifPresentOrElse(upper -> iterator.seekForPrev(Bytes.of(upper)), iterator::seekToLast);
            if (iterator.isValid() && !range.isBelowUpper(ByteBuffer.wrap(iterator.key()))) {
                iterator.prev();
            }
        } else {
            range.lower().ifPresentOrElse(lower -> iterator.seek(Bytes.of(lower)), iterator::seekToFirst);
            if (iterator.isValid() && !range.isAboveLower(ByteBuffer.wrap(iterator.key()))) {
                iterator.next();
            }
        }
    }

    private void free() {
        if (!closed) {
            closed = true;
            store.open().remove(releasing);
            iterator.close();
            options.close();
            family.release();
        }
    }
}
