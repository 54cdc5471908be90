package io.aiodb.store.redis;

import io.aiodb.store.Batch;
import io.aiodb.store.Capabilities;
import io.aiodb.store.Durability;
import io.aiodb.store.Lifecycle;
import io.aiodb.store.PlacedStore;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Statistics;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/** Tables on a Redis server; {@link RedisProvider} says how. Each batch is one run of a script, which nothing interrupts. */
final class RedisStore extends PlacedStore<RedisTable, String> {
    static final String NAME = "redis";

    /** Redis takes longer ones; that of the other stores makes them exchangeable. */
    static final int MAX_KEY_BYTES = 64 << 10;

    /** `aiodb serve` takes names of keys up to this length, and Redis longer ones. */
    private static final int MAX_NAME_BYTES_OF_AIODB = 64 << 10;

    /** The digits of a generation and the colon behind them, at most. */
    private static final int MAX_GENERATION_BYTES = 20;

    /** The longest string of Redis unless its configuration says otherwise. */
    static final int MAX_VALUE_BYTES = 512 << 20;

    /** Nobody else is answered meanwhile; Redis itself takes four times as many. */
    static final int MAX_OPERATIONS = 65_536;

    private final Lifecycle lifecycle = new Lifecycle();
    private final ServerDirectory own;
    private final Capabilities capabilities;
    private final byte[] rowPrefix;
    private final String indexPrefix;
    private final byte[] tablesKey;
    private final byte[] removedKey;
    private final RedisServer server;
    private final RedisRemoval removal;

    RedisStore(ServerDirectory own, RedisSettings settings, String prefix) {
        super(RedisTable.class);
        this.own = own;
        this.rowPrefix = RedisSession.bytes(prefix + "row:");
        this.indexPrefix = prefix + "index:";
        this.tablesKey = RedisSession.bytes(prefix + "tables");
        this.removedKey = RedisSession.bytes(prefix + "removed");
        this.removal = new RedisRemoval(this);
        this.server = new RedisServer(settings, own, prefix, this::findTables);
        try {
            RedisSession session = server.session();
            int keyBytes = session.isAiodb()
                    ? MAX_NAME_BYTES_OF_AIODB - rowPrefix.length - MAX_GENERATION_BYTES
                    : MAX_KEY_BYTES;
            this.capabilities = new Capabilities(
                    NAME, keyBytes, MAX_VALUE_BYTES, keyBytes, session.syncs().classes(), true, false, true, true, false);
        } catch (RuntimeException failure) {
            removal.close();
            server.close();
            throw failure;
        }
        removeLater();
    }

    @Override
    public Capabilities capabilities() {
        return capabilities;
    }

    @Override
    protected RedisTable create(String name) {
        return lifecycle.callAlone(() -> {
            RedisSession session = server.session();
            return tables.create(name, () -> new RedisTable(this, name, changeTable(session, "create", name, "")));
        });
    }

    @Override
    protected void apply(Batch batch, Durability durability) {
        if (batch.size() > MAX_OPERATIONS) {
            throw new StoreException.Limit("a batch of " + batch.size() + " operations: it may have at most " + MAX_OPERATIONS
                    + " in a store of kind " + NAME + "; split it");
        }
        call(session -> {
            session.syncs().check(durability);
            RedisWrites writes = new RedisWrites(this);
            batch.replay(writes);
            if (durability == Durability.SYNC) {
                session.synced(() -> apply(session, writes.arguments()));
            } else if (batch.size() > 0) {
                apply(session, writes.arguments());
            }
            return null;
        });
    }

    private static long apply(RedisSession session, List<byte[]> operations) {
        RedisHistory history = session.history();
        Lock writing = history.writing().readLock();
        writing.lock();
        try {
            List<byte[]> arguments = new ArrayList<>(List.of(
                    session.marker(),
                    RedisSession.bytes(history.isWanted() ? "yes" : ""),
                    RedisSession.bytes(Long.toString(history.maxBytes())),
                    RedisSession.bytes(Integer.toString(MAX_VALUE_BYTES))));
            arguments.addAll(operations);
            List<Object> answer = session.run(RedisScript.WRITE, arguments.toArray(byte[][]::new));
            long sequence = RedisSession.number(answer.get(0));
            history.record(sequence, before(answer));
            return sequence;
        } finally {
            writing.unlock();
        }
    }

    private static List<RedisHistory.Row> before(List<Object> answer) {
        if (((byte[]) answer.get(1)).length > 0) {
            return null;
        }
        List<RedisHistory.Row> rows = new ArrayList<>();
        for (int at = 2; at < answer.size(); at += 3) {
            rows.add(new RedisHistory.Row(
                    RedisSession.text(answer.get(at)), (byte[]) answer.get(at + 1), (byte[]) answer.get(at + 2)));
        }
        return rows;
    }

    @Override
    public Snapshot snapshot() {
        return call(session -> {
            RedisHistory.View view = session.history().open();
            try {
                view.isAt(session.sequence());
                return new RedisSnapshot(this, session, view, tables.places());
            } catch (RuntimeException failure) {
                view.close();
                throw failure;
            }
        });
    }

    @Override
    public void sync() {
        call(session -> {
            session.syncs().check(Durability.SYNC);
            // A change of no row: the server syncs when it has something to write.
            return session.synced(() -> apply(session, List.of()));
        });
    }

    @Override
    public Statistics statistics() {
        return call(session -> {
            Map<String, String> info = RedisServer.fields(session.await(session.commands().info()));
            long rows = 0;
            for (RedisTable table : tables.all()) {
                rows += session.await(session.commands().zcard(indexKey(table.place())));
            }
            long memory = Long.parseLong(info.get("used_memory"));
            long disk = Long.parseLong(info.getOrDefault("aof_current_size", "0"));
            return new Statistics(disk, rows, Map.of("server_memory_bytes", memory));
        });
    }

    @Override
    public void close() {
        lifecycle.close(() -> {
            removal.close();
            try {
                syncBeforeClose();
            } finally {
                server.close();
                own.close();
            }
        });
    }

    private void syncBeforeClose() {
        if (server.lastSession().syncs().isUnsynced()) {
            try {
                RedisSession session = server.session();
                session.synced(() -> apply(session, List.of()));
            } catch (StoreException.Unavailable failure) {
                throw new StoreException.Failed("writes of class interval may not survive a power cut of the server: "
                        + failure.getMessage(), failure);
            }
        }
    }

    @Override
    protected <T> T look(Supplier<T> body) {
        return run(body);
    }

    /** A call of one session, unless the store was closed. */
    <T> T call(Function<RedisSession, T> body) {
        return lifecycle.call(() -> body.apply(server.session()));
    }

    /** A call that has its session already. */
    <T> T run(Supplier<T> body) {
        return lifecycle.call(body);
    }

    /** A call while no other one runs. */
    void change(Consumer<RedisSession> body) {
        lifecycle.callAlone(() -> {
            body.accept(server.session());
            return null;
        });
        removeLater();
    }

    /** Makes, empties or drops a table on the server, and answers with its new generation. */
    String changeTable(RedisSession session, String what, String name, String generation) {
        return session.synced(() -> {
            List<Object> answer = session.run(
                    RedisScript.TABLE,
                    session.marker(),
                    RedisSession.bytes(what),
                    RedisSession.bytes(name),
                    RedisSession.bytes(generation));
            long sequence = RedisSession.number(answer.get(0));
            session.history().record(sequence, List.of());
            if (!generation.isEmpty()) {
                removal.note(generation, sequence);
            }
            return RedisSession.text(answer.get(1));
        });
    }

    /** Rows of emptied and dropped tables that no snapshot needs are deleted in the background. */
    void removeLater() {
        removal.begin();
    }

    void forget(RedisTable table) {
        tables.remove(table);
    }

    /** Where the value of a row is. */
    byte[] rowKey(String generation, byte[] key) {
        byte[] number = RedisSession.bytes(generation);
        return ByteBuffer.allocate(rowPrefix.length + number.length + 1 + key.length)
                .put(rowPrefix)
                .put(number)
                .put((byte) ':')
                .put(key)
                .array();
    }

    /** Where the keys of a table are. */
    byte[] indexKey(String generation) {
        return RedisSession.bytes(indexPrefix + generation);
    }

    /** Where the generations are whose rows are to be deleted. */
    byte[] removedKey() {
        return removedKey;
    }

    /** The tables as the server has them, when a session begins: what a lost session has done to them is not known otherwise. */
    private void findTables(RedisSession session) {
        Map<byte[], byte[]> found = session.await(session.commands().hgetall(tablesKey));
        Map<String, String> generations = new HashMap<>();
        found.forEach((name, generation) -> generations.put(RedisSession.text(name), RedisSession.text(generation)));
        tables.update(generations, (name, generation) -> new RedisTable(this, name, generation));
    }

    /** A class of durability as parameters call it. */
    static String spelled(Durability durability) {
        return durability.name().toLowerCase(Locale.ROOT);
    }
}
