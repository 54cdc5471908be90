package io.aiodb.store.redis;

import io.aiodb.store.StoreException;
import io.lettuce.core.KeyValue;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.async.RedisAsyncCommands;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * A connection over which the store's opener, and nobody else, changes it. It ends with the first answer that does not come:
 * what was under way is then not known, and the next session makes sure that it is over.
 */
final class RedisSession implements AutoCloseable {
    private final RedisSettings settings;
    private final StatefulRedisConnection<byte[], byte[]> connection;
    private final RedisAsyncCommands<byte[], byte[]> commands;
    private final byte[][] prefix;
    private final byte[] markerKey;
    private final byte[] sequenceKey;
    private final Map<RedisScript, String> digests = new EnumMap<>(RedisScript.class);

    private final RedisSyncs syncs;
    private byte[] marker;
    private RedisHistory history;
    private volatile boolean ended;

    RedisSession(RedisSettings settings, StatefulRedisConnection<byte[], byte[]> connection, String prefix) {
        this.settings = settings;
        this.connection = connection;
        this.commands = connection.async();
        this.syncs = new RedisSyncs(this, settings);
        this.prefix = new byte[][] {bytes(prefix)};
        this.markerKey = bytes(prefix + "store");
        this.sequenceKey = bytes(prefix + "sequence");
    }

    /** Says what the store's marker is, with which later calls are made, and what the last change was. */
    void start(byte[] marker, long sequence) {
        this.marker = marker;
        this.history = new RedisHistory(settings.historyBytes(), sequence);
    }

    /** What the store carries while this session is the one that may change it. */
    byte[] marker() {
        return marker;
    }

    RedisHistory history() {
        return history;
    }

    /** When the server syncs what it writes. */
    RedisSyncs syncs() {
        return syncs;
    }

    /** Runs a change so that it survives a power cut when it was acknowledged, as far as the server can do that. */
    <T> T synced(Supplier<T> change) {
        syncs.begin();
        try {
            return change.get();
        } finally {
            syncs.end();
        }
    }

    RedisAsyncCommands<byte[], byte[]> commands() {
        return commands;
    }

    boolean isOpen() {
        return !ended && connection.isOpen();
    }

    /** Sends the scripts' texts, once for each session: a server forgets them when it ends. */
    void load() {
        for (RedisScript script : RedisScript.values()) {
            digests.put(script, await(commands.scriptLoad(script.text())));
        }
    }

    /** Runs a script with what the names of keys begin with and these arguments; the first is the marker, if not given. */
    List<Object> run(RedisScript script, byte[]... arguments) {
        return await(commands.evalsha(digests.get(script), ScriptOutputType.MULTI, prefix, arguments));
    }

    /** As {@link #run}, for an answer of one value. */
    byte[] runForValue(RedisScript script, byte[]... arguments) {
        return await(commands.evalsha(digests.get(script), ScriptOutputType.VALUE, prefix, arguments));
    }

    /** A value, and the number of the last change at that moment. */
    record Found(byte[] value, long sequence) {}

    /** What a key of the server has, together with proof that the store is there. */
    Found get(byte[] key) {
        List<KeyValue<byte[], byte[]>> found = await(commands.mget(markerKey, sequenceKey, key));
        if (!Arrays.equals(marker, found.get(0).getValueOrElse(null))) {
            throw gone();
        }
        return new Found(found.get(2).getValueOrElse(null), number(found.get(1).getValueOrElse(bytes("0"))));
    }

    /** The number of the last change. */
    long sequence() {
        return get(sequenceKey).sequence();
    }

    /** A parameter of the server's configuration. */
    String configured(String name) {
        return await(commands.configGet(name)).getOrDefault(name, "unknown");
    }

    /** Whether the server is `aiodb serve`. */
    boolean isAiodb() {
        return RedisServer.fields(await(commands.info("server"))).containsKey("aiodb_version");
    }

    /** The answer of a command. */
    <T> T await(RedisFuture<T> answer) {
        boolean interrupted = false;
        long deadline = System.nanoTime() + settings.timeout().toNanos();
        try {
            while (true) {
                try {
                    return answer.get(Math.max(1, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
                } catch (InterruptedException interruption) {
                    interrupted = true;
                }
            }
        } catch (TimeoutException late) {
            throw end("does not answer within " + settings.timeout().toMillis() + " ms", late);
        } catch (ExecutionException failure) {
            if (failure.getCause() instanceof RedisCommandExecutionException refused) {
                throw refused(refused);
            }
            throw end("cannot be reached: " + reason(failure.getCause()), failure.getCause());
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** What a failure of a connection says for people; one that was closed says nothing by itself. */
    static String reason(Throwable failure) {
        return failure instanceof ClosedChannelException ? "it has closed the connection" : String.valueOf(failure.getMessage());
    }

    /** The server as it is for callers whose writes have not begun. */
    private StoreException end(String why, Throwable cause) {
        String said = settings.server() + " " + why;
        release(said);
        return new StoreException.Unavailable(
                said + "; a write that was under way may have happened or not", cause);
    }

    private StoreException gone() {
        return end("no longer has the store as this process left it: it was emptied, or the store was opened elsewhere", null);
    }

    private StoreException refused(RedisCommandExecutionException refused) {
        String said = String.valueOf(refused.getMessage());
        String code = said.startsWith("ERR ") ? said.substring("ERR ".length()) : said;
        String server = settings.server() + " says: " + said;
        if (code.startsWith("GONE")) {
            return gone();
        }
        if (code.startsWith("NOSCRIPT")) {
            return end("has forgotten the scripts of this session", refused);
        }
        if (code.startsWith("LONG ")) {
            return new StoreException.Limit("a value of " + code.split(" ")[1] + " bytes: values have at most "
                    + RedisStore.MAX_VALUE_BYTES + " bytes in a store of kind " + RedisStore.NAME);
        }
        if (code.startsWith("ROW")) {
            return new StoreException.Corruption(settings.server() + " has the key of a row, but not its value");
        }
        if (code.startsWith("OOM")) {
            return new StoreException.Full(server + ": raise its maxmemory, or delete rows");
        }
        if (code.startsWith("MISCONF") && said.contains("No space left")) {
            return new StoreException.Full(server + ": make space on the server's disk");
        }
        for (String passing : List.of("LOADING", "BUSY", "MASTERDOWN", "READONLY", "CLUSTERDOWN")) {
            if (code.startsWith(passing)) {
                return new StoreException.Unavailable(server);
            }
        }
        return new StoreException.Failed(server, refused);
    }

    @Override
    public void close() {
        release("the store was closed");
    }

    /** Ends it where its client is about to close the connection. */
    synchronized void leave() {
        ended = true;
        if (history != null) {
            history.end("the store was closed");
        }
    }

    private synchronized void release(String why) {
        if (!ended) {
            ended = true;
            if (history != null) {
                history.end(why);
            }
            connection.closeAsync();
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(Object bytes) {
        return new String((byte[]) bytes, StandardCharsets.UTF_8);
    }

    static long number(Object bytes) {
        return Long.parseLong(text(bytes));
    }
}
