package io.aiodb.store.lmdb;

import io.aiodb.store.Places;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.util.ArrayList;
import java.util.List;
import org.lmdbjava.Dbi;
import org.lmdbjava.Txn;

/** A snapshot of an {@link LmdbStore}: a read transaction. Its scans end with it. */
final class LmdbSnapshot implements Snapshot {
    private final LmdbStore store;
    private final Txn<byte[]> reading;
    private final Places<LmdbTable, Dbi<byte[]>> places;
    private final List<LmdbRows> scans = new ArrayList<>();
    private final Runnable releasing = this::free;
    private boolean closed;

    /** Made in a call of the store. */
    LmdbSnapshot(LmdbStore store, Places<LmdbTable, Dbi<byte[]>> places) {
        this.store = store;
        this.places = places;
        this.reading = store.env().txnRead();
        store.open().add(releasing);
    }

    @Override
    public synchronized byte[] get(Table table, byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> rows(table).get(reading, key));
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
        return places.of(store.own(table));
    }
}
