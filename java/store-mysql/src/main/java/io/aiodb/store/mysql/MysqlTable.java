package io.aiodb.store.mysql;

import io.aiodb.store.PlacedTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.Objects;

/**
 * A table of a {@link MysqlStore}. Its place is a generation, a number that an InnoDB table on the server is called after;
 * after each truncate it is another one.
 */
final class MysqlTable extends PlacedTable<MysqlStore, Long> {
    MysqlTable(MysqlStore store, String name, long generation) {
        super(store, name, generation);
    }

    @Override
    public byte[] get(byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(() -> store.server().get(rows(), key));
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(() -> MysqlRows.ofTable(store, rows(), range));
    }

    @Override
    public long estimatedRows() {
        return store.call(this::countRows);
    }

    /** Made in a call of the store. */
    long countRows() {
        String rows = rows();
        return store.server().read(connection -> MysqlReads.count(connection, store.server().settings(), rows));
    }

    @Override
    public void truncate() {
        store.change(() -> {
            place();
            setPlace(store.makeRows(name()));
        });
    }

    @Override
    public void drop() {
        store.change(() -> {
            place();
            store.forget(this);
        });
    }

    /** The name of the table on the server. */
    String rows() {
        return MysqlSchema.rowsName(place());
    }
}
