package io.aiodb.store.lmdb;

import io.aiodb.store.PlacedTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.Objects;
import org.lmdbjava.Dbi;
import org.lmdbjava.Txn;

/** A table of an {@link LmdbStore}. */
final class LmdbTable extends PlacedTable<LmdbStore, Dbi<byte[]>> {
    LmdbTable(LmdbStore store, String name, Dbi<byte[]> rows) {
        super(store, name, rows);
    }

    @Override
    public byte[] get(byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> {
            try (Txn<byte[]> reading = store.env().txnRead()) {
                return place().get(reading, key);
            }
        });
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(() -> {
            Txn<byte[]> reading = store.env().txnRead();
            try {
                return new LmdbRows(store, place().openCursor(reading), reading, range);
            } catch (RuntimeException failure) {
                reading.close();
                throw failure;
            }
        });
    }

    @Override
    public long estimatedRows() {
        return store.call(() -> {
            try (Txn<byte[]> reading = store.env().txnRead()) {
                return place().stat(reading).entries;
            }
        });
    }

    @Override
    public void truncate() {
        remove(false);
    }

    @Override
    public void drop() {
        remove(true);
    }

    private void remove(boolean entirely) {
        store.callAlone(() -> {
            try (Txn<byte[]> writing = store.env().txnWrite()) {
                place().drop(writing, entirely);
                writing.commit();
            }
            if (entirely) {
                store.forget(this);
            }
            return null;
        });
    }
}
