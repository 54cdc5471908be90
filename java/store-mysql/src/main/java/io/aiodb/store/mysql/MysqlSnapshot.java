package io.aiodb.store.mysql;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/** A snapshot of a {@link MysqlStore}: a view, with the generations that the tables had. Its scans end with it. */
final class MysqlSnapshot implements Snapshot {
    private final MysqlStore store;
    private final MysqlView view;
    private final Map<MysqlTable, String> tables = new HashMap<>();
    private volatile boolean closed;

    /** Made in a call of the store. */
    MysqlSnapshot(MysqlStore store, MysqlView view, Iterable<MysqlTable> tables) {
        this.store = store;
        this.view = view;
        tables.forEach(table -> this.tables.put(table, table.rows()));
    }

    @Override
    public byte[] get(Table table, byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.run(() -> {
            String rows = store.server().settings().table(rows(table));
            return view.read(connection -> MysqlReads.get(connection, rows, key));
        });
    }

    @Override
    public int get(Table table, ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        return Bytes.answer(get(table, Bytes.of(key)), value);
    }

    @Override
    public Rows scan(Table table, Range range) {
        Objects.requireNonNull(range, "range");
        return store.run(() -> MysqlRows.ofView(store, rows(table), range, view));
    }

    @Override
    public void close() {
        closed = true;
        view.close();
        store.removeLater();
    }

    private String rows(Table table) {
        if (closed) {
            throw new StoreException.Closed("the snapshot was closed");
        }
        MysqlTable own = store.own(table);
        own.generation();
        String rows = tables.get(own);
        if (rows == null) {
            throw new StoreException.NoSuchTable("the table `" + table.name() + "` is younger than the snapshot");
        }
        return rows;
    }
}
