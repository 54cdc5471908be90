package io.aiodb.store.redis;

import io.aiodb.store.Keys;
import io.aiodb.store.Places;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.TreeMap;

/** A snapshot of a {@link RedisStore}: a view of its history, with the generations that its tables had. */
final class RedisSnapshot implements Snapshot {
    private final RedisStore store;
    private final RedisSession session;
    private final RedisHistory.View view;
    private final Places<RedisTable, String> generations;
    private volatile boolean closed;

    RedisSnapshot(
            RedisStore store, RedisSession session, RedisHistory.View view, Places<RedisTable, String> generations) {
        this.store = store;
        this.session = session;
        this.view = view;
        this.generations = generations;
    }

    @Override
    public byte[] get(Table table, byte[] key) {
        store.capabilities().checkKey(key.length);
        return store.run(() -> {
            String generation = generation(table);
            RedisSession.Found found = session.get(store.rowKey(generation, key));
            ByteBuffer place = ByteBuffer.wrap(key);
            NavigableMap<ByteBuffer, byte[]> row = new TreeMap<>(Keys::compare);
            if (found.value() != null) {
                row.put(place, found.value());
            }
            view.takeBack(generation, found.sequence(), row, place, place);
            return row.get(place);
        });
    }

    @Override
    public Rows scan(Table table, Range range) {
        Objects.requireNonNull(range, "range");
        return store.run(() -> RedisRows.ofView(store, session, generation(table), range, view, this::check));
    }

    @Override
    public void close() {
        closed = true;
        view.close();
        store.removeLater();
    }

    private void check() {
        if (closed) {
            throw new StoreException.Closed("the snapshot was closed");
        }
        view.check();
    }

    private String generation(Table table) {
        check();
        return generations.of(store.own(table));
    }
}
