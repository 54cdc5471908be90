package io.aiodb.store.rocksdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.CopiedRows;
import io.aiodb.store.Range;
import java.nio.ByteBuffer;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksIterator;

/** A scan of a {@link RocksStore}: one crossing, or two, for each row. */
final class RocksRows extends CopiedRows {
    private final RocksStore store;
    private final RocksFamilies.Family family;
    private final ReadOptions options;
    private final RocksIterator iterator;
    private final Runnable releasing = this::free;
    private boolean started;

    /** Made in a call of the store. */
    RocksRows(RocksStore store, RocksFamilies.Family family, ReadOptions options, Range range) {
        super(range);
        this.store = store;
        this.family = family.use();
        this.options = options;
        this.iterator = store.families().db.newIterator(family.handle, options);
        store.open().add(releasing);
    }

    @Override
    public synchronized boolean next() {
        checkOpen();
        return store.call(() -> {
            if (left() == 0) {
                return false;
            }
            step();
            if (!iterator.isValid()) {
                end();
                iterator.status();
                return false;
            }
            ByteBuffer found = ByteBuffer.wrap(iterator.key());
            return range.isBeforeEnd(found) ? show(found, range.isKeysOnly() ? null : iterator.value()) : end();
        });
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
        if (setClosed()) {
            store.open().remove(releasing);
            iterator.close();
            options.close();
            family.release();
        }
    }
}
