package io.aiodb.store.lmdb;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.lmdbjava.Dbi;
import org.lmdbjava.Txn;

/** A snapshot of an {@link LmdbStore}: a read transaction. Its scans end with it. */
final class LmdbSnapshot implements Snapshot {
    private final LmdbStore store;
    private final Txn<byte[]> reading;
    private final Map<LmdbTable, Dbi<byte[]>> tables = new HashMap<>();
    private final List<LmdbRows> scans = new ArrayList<>();
    private final Runnable releasing = this::free;
    private boolean closed;

    /** Made in a call of the store. */
    LmdbSnapshot(LmdbStore store, List<LmdbTable> tables) {
        this.store = store;
        this.reading = store.env().txnRead();
        tables.forEach(table -> this.tables.put(table, table.rows()));
        store.open().add(releasing);
    }

    @Override
    public synchronized byte[] get(Table table, byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> rows(table).get(reading, key));
    }

    @Override
    public int get(Table table, ByteBuffer key, ByteBuffer value) {
        return Bytes.answer(get(table, Bytes.of(key)), value);
    }

    @Override
    public synchronized Rows scan(Table table, Range range) {
        return store.call(() -> {
            LmdbRows rows = new LmdbRows(store, rows(table).openCursor(reading), this, range);
            scans.removeIf(LmdbRows::isClosed);
            scans.add(rows);
            return rows;
        });
    }

    @Override
    public synchronized void close() {
        store.release(releasing);
    }

    private void free() {
        if (!closed) {
            closed = true;
            store.open().remove(releasing);
            scans.forEach(LmdbRows::free);
            reading.close();
        }
    }

    private Dbi<byte[]> rows(Table table) {
        if (closed) {
            throw new StoreException.Closed("the snapshot was closed");
        }
        LmdbTable own = store.own(table);
        own.rows();
        Dbi<byte[]> rows = tables.get(own);
        if (rows == null) {
            throw new StoreException.NoSuchTable("the table `" + table.name() + "` is younger than the snapshot");
        }
        return rows;
    }
}
