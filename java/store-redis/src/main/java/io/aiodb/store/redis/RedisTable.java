package io.aiodb.store.redis;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Objects;

/** A table of a {@link RedisStore}: a sorted set of its keys, and a string for each value. */
final class RedisTable implements Table {
    private final RedisStore store;
    private final String name;

    /** What the names of its keys on the server have; a truncate makes a new one. Null once the table was dropped. */
    private volatile String generation;

    RedisTable(RedisStore store, String name, String generation) {
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
        return store.call(session -> session.get(store.rowKey(generation(), key)).value());
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        return Bytes.answer(get(Bytes.of(key)), value);
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(session -> RedisRows.ofTable(store, session, generation(), range));
    }

    @Override
    public long estimatedRows() {
        return store.call(session -> session.await(session.commands().zcard(store.indexKey(generation()))));
    }

    @Override
    public void truncate() {
        store.change(session -> generation = store.changeTable(session, "truncate", name, generation()));
    }

    @Override
    public void drop() {
        store.change(session -> {
            store.changeTable(session, "drop", name, generation());
            store.forget(this);
        });
    }

    /** The generation of its rows. */
    String generation() {
        String now = generation;
        if (now == null) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`: it was dropped");
        }
        return now;
    }

    /** Says what the server has; null if it has no such table. */
    void is(String found) {
        generation = found;
    }
}
