package io.aiodb.store.mysql;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Objects;

/** A table of a {@link MysqlStore}: an InnoDB table for its rows, another one after each truncate. */
final class MysqlTable implements Table {
    private final MysqlStore store;
    private final String name;

    /** What the table on the server is called after; 0 once this one was dropped. */
    private volatile long generation;

    MysqlTable(MysqlStore store, String name, long generation) {
        this.store = store;
        this.name = name;
        this.generation = generation;
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
        return store.call(() -> store.server().read(connection ->
                MysqlReads.get(connection, store.server().settings().table(rows()), key)));
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        return Bytes.answer(get(Bytes.of(key)), value);
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
            generation();
            generation = store.makeRows(name);
        });
    }

    @Override
    public void drop() {
        store.change(() -> {
            generation();
            store.forget(this);
        });
    }

    /** The generation of its rows. */
    long generation() {
        long now = generation;
        if (now == 0) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`: it was dropped");
        }
        return now;
    }

    /** The name of the table on the server. */
    String rows() {
        return MysqlSchema.rowsName(generation());
    }

    /** Says what the server has; 0 if it has no such table. */
    void is(long found) {
        generation = found;
    }
}
