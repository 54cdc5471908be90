package io.aiodb.store.mysql;

import io.aiodb.store.Places;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.util.Objects;

/** A snapshot of a {@link MysqlStore}: a view, with the generations that the tables had. Its scans end with it. */
final class MysqlSnapshot implements Snapshot {
    private final MysqlStore store;
    private final MysqlView view;
    private final Places<MysqlTable, Long> generations;
    private volatile boolean closed;

    /** Made in a call of the store. */
    MysqlSnapshot(MysqlStore store, MysqlView view, Places<MysqlTable, Long> generations) {
        this.store = store;
        this.view = view;
        this.generations = generations;
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
        return MysqlSchema.rowsName(generations.of(store.own(table)));
    }
}
