package io.aiodb.store.redis;

import io.aiodb.store.PlacedTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.util.Objects;

/**
 * A table of a {@link RedisStore}: a sorted set of its keys, and a string for each value. Its place is a generation, which the
 * names of all these have; a truncate makes a new one.
 */
final class RedisTable extends PlacedTable<RedisStore, String> {
    RedisTable(RedisStore store, String name, String generation) {
        super(store, name, generation);
    }

    @Override
    public byte[] get(byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.call(session -> session.get(store.rowKey(place(), key)).value());
    }

    @Override
    public Rows scan(Range range) {
        Objects.requireNonNull(range, "range");
        return store.call(session -> RedisRows.ofTable(store, session, place(), range));
    }

    @Override
    public long estimatedRows() {
        return store.call(session -> session.await(session.commands().zcard(store.indexKey(place()))));
    }

    @Override
    public void truncate() {
        store.change(session -> setPlace(store.changeTable(session, "truncate", name(), place())));
    }

    @Override
    public void drop() {
        store.change(session -> {
            store.changeTable(session, "drop", name(), place());
            store.forget(this);
        });
    }
}
