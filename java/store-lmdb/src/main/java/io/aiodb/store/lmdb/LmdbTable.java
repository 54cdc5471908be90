package io.aiodb.store.lmdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Objects;
import org.lmdbjava.Dbi;
import org.lmdbjava.Txn;

/** A table of an {@link LmdbStore}. */
final class LmdbTable implements Table {
    private final LmdbStore store;
    private final String name;

    /** Null once the table was dropped. Changed by calls that run alone. */
    private Dbi<byte[]> rows;

    LmdbTable(LmdbStore store, String name, Dbi<byte[]> rows) {
        this.store = store;
        this.name = name;
        this.rows = rows;
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
        return store.call(() -> {
            try (Txn<byte[]> reading = store.env().txnRead()) {
                return rows().get(reading, key);
            }
        });
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return Bytes.answer(get(Bytes.of(key)), value);
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(() -> {
            Txn<byte[]> reading = store.env().txnRead();
            try {
                return new LmdbRows(store, rows().openCursor(reading), reading, range);
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
                return rows().stat(reading).entries;
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

    /** The table's database, for calls of the store. */
    Dbi<byte[]> rows() {
        if (rows == null) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`: it was dropped");
        }
        return rows;
    }

    private void remove(boolean entirely) {
        store.callAlone(() -> {
            try (Txn<byte[]> writing = store.env().txnWrite()) {
                rows().drop(writing, entirely);
                writing.commit();
            }
            if (entirely) {
                rows = null;
                store.forget(this);
            }
            return null;
        });
    }
}
