package io.aiodb.store.redis;

import io.aiodb.store.Durability;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.StoreException;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.DefaultClientResources;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/**
 * The server of a store. It hands out the session with it, and makes a new one where that has ended: each has to find the
 * store as the last one left it, on a server that keeps it as durably as was asked for.
 */
final class RedisServer implements AutoCloseable {
    /** What is on the server and how: see the scripts. */
    private static final String FORMAT = "1";

    private static final int THREADS = 2;

    /** After a connection failed none is tried for so long. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** So many times in a row is a connection tried whose handshake ended before it was looked at. */
    private static final int MAX_HANDSHAKES = 5;

    private final RedisSettings settings;
    private final ServerDirectory own;
    private final String prefix;
    private final Consumer<RedisSession> onSession;
    private final ClientResources resources;
    private final RedisClient client;

    /** Changed by a thread that holds {@link #connecting}, like what follows. */
    private volatile RedisSession session;

    private volatile StoreException lastFailure;
    private volatile long lastFailureNanos;

    private final Lock connecting = new ReentrantLock();

    /** @param onSession called with each new session, before anybody else has it */
    RedisServer(RedisSettings settings, ServerDirectory own, String prefix, Consumer<RedisSession> onSession) {
        this.settings = settings;
        this.own = own;
        this.prefix = prefix;
        this.onSession = onSession;
        resources = DefaultClientResources.builder()
                .ioThreadPoolSize(THREADS)
                .computationThreadPoolSize(THREADS)
                .build();
        RedisURI.Builder uri = RedisURI.builder()
                .withHost(settings.host())
                .withPort(settings.port())
                .withTimeout(settings.timeout());
        if (settings.password() != null) {
            if (settings.user() == null) {
                uri.withPassword(settings.password());
            } else {
                uri.withAuthentication(settings.user(), settings.password());
            }
        }
        client = RedisClient.create(resources, uri.build());
        client.setOptions(ClientOptions.builder()
                // What follows a lost connection is for a new session to find out.
                .autoReconnect(false)
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .socketOptions(SocketOptions.builder().connectTimeout(settings.timeout()).build())
                .build());
    }

    /** The session, a new one if need be. */
    RedisSession session() {
        RedisSession now = session;
        return now != null && now.isOpen() ? now : newSession();
    }

    /** The session that was there last; null if there never was one. */
    RedisSession lastSession() {
        return session;
    }

    /** Where somebody else makes one already, nobody waits long for it: a server that hangs takes its time to fail. */
    private RedisSession newSession() {
        if (!lockToConnect()) {
            StoreException known = lastFailure;
            throw new StoreException.Unavailable(known != null ? known.getMessage() : settings.server()
                    + " is being connected with again");
        }
        try {
            return madeSession();
        } finally {
            connecting.unlock();
        }
    }

    private boolean lockToConnect() {
        try {
            return connecting.tryLock(PAUSE_NANOS, TimeUnit.NANOSECONDS);
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private RedisSession madeSession() {
        RedisSession last = session;
        if (last != null && last.isOpen()) {
            return last;
        }
        StoreException known = lastFailure;
        if (known != null && System.nanoTime() - lastFailureNanos < PAUSE_NANOS) {
            throw new StoreException.Unavailable(known.getMessage());
        }
        if (last != null) {
            last.close();
        }
        try {
            RedisSession next = connect(last);
            session = next;
            lastFailure = null;
            return next;
        } catch (StoreException failure) {
            lastFailureNanos = System.nanoTime();
            lastFailure = failure;
            if (last == null) {
                throw failure;
            }
            // Only who opens a store can be told that its configuration makes no sense.
            throw new StoreException.Unavailable(failure.getMessage(), failure);
        }
    }

    private RedisSession connect(RedisSession last) {
        StatefulRedisConnection<byte[], byte[]> connection = connected();
        RedisSession next = new RedisSession(settings, connection, prefix);
        try {
            if (last != null) {
                next.syncs().putBackAfter(last.syncs());
            }
            new RedisChecks(next, settings).check();
            next.load();
            open(next, last);
            onSession.accept(next);
            own.setMade();
            return next;
        } catch (RuntimeException failure) {
            next.close();
            throw failure;
        }
    }

    private StatefulRedisConnection<byte[], byte[]> connected() {
        for (int tries = 1; ; tries++) {
            try {
                return client.connect(ByteArrayCodec.INSTANCE);
            } catch (RedisConnectionException failure) {
                // A server that refuses the password at once may end the channel before Lettuce asks for the handler of the
                // handshake. Lettuce then says that there is no such handler, and not what the server has said.
                if (!(root(failure) instanceof IllegalStateException) || tries == MAX_HANDSHAKES) {
                    throw notConnected(failure);
                }
            }
        }
    }

    private static Throwable root(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause;
    }

    private StoreException notConnected(RedisException failure) {
        Throwable cause = root(failure);
        String why = RedisSession.reason(cause);
        if (why.startsWith("WRONGPASS") || why.startsWith("NOAUTH") || why.contains("AUTH")) {
            return new StoreException.Configuration(settings.server() + " refuses the user or the password: " + why
                    + ": set `user` and `password_file`", failure);
        }
        if (why.startsWith("NOPERM")) {
            return new StoreException.Configuration(settings.server() + " does not let the user do that: " + why, failure);
        }
        return new StoreException.Unavailable(settings.server() + " cannot be reached: " + why, failure);
    }

    /** Takes the store for the session, if it is there as the last session left it. */
    private void open(RedisSession next, RedisSession last) {
        List<Object> answer;
        try {
            answer = next.run(
                    RedisScript.OPEN,
                    RedisSession.bytes(FORMAT),
                    own.id().toString().getBytes(StandardCharsets.US_ASCII),
                    RedisSession.bytes(own.isMade() ? "yes" : "no"),
                    last == null ? new byte[0] : last.marker());
        } catch (StoreException.Failed refused) {
            throw notOpened(refused);
        }
        long sequence = RedisSession.number(answer.get(1));
        if (last != null && settings.durability() == Durability.SYNC && sequence < last.history().recorded()) {
            throw new StoreException.Unavailable(settings.server() + " has lost changes that it had acknowledged: its last one is "
                    + sequence + ", and there were " + last.history().recorded());
        }
        next.start((byte[]) answer.get(0), sequence);
    }

    private StoreException notOpened(StoreException.Failed refused) {
        String said = refused.getCause().getMessage().replaceFirst("^ERR ", "");
        String where = settings.server() + " has, under the names that begin with " + prefix + ", ";
        String word = said.split(" ")[0];
        return switch (word) {
            case "FOREIGN" -> new StoreException.Configuration(where + "what is no store of this kind: give another `name`");
            case "OTHER" -> new StoreException.Configuration(where + "the store " + said.split(" ")[1] + ", and "
                    + own.path() + " is of the store " + own.id() + ": give another `name`, or the directory of that store");
            case "FORMAT" -> newerOrOlder(where, said.split(" ")[1]);
            case "TAKEN" -> new StoreException.Unavailable(where + "the store, but another process has opened it since");
            case "LOST" -> new StoreException.Unavailable(where + "nothing, but it had the store of " + own.path()
                    + ": bring the server's data back, or start with a new directory if they are gone for good");
            default -> refused;
        };
    }

    private static StoreException newerOrOlder(String where, String format) {
        String said = where + "a store of format " + format + ", and this version knows format " + FORMAT;
        return Integer.parseInt(format) > Integer.parseInt(FORMAT)
                ? new StoreException.NewerVersion(said + ": use a newer version")
                : new StoreException.Configuration(said + ": use the version that made it");
    }

    /** What `INFO` says, by names. */
    static Map<String, String> fields(String info) {
        Map<String, String> fields = new java.util.HashMap<>();
        info.lines().filter(line -> line.contains(":")).forEach(line -> {
            int colon = line.indexOf(':');
            fields.put(line.substring(0, colon), line.substring(colon + 1));
        });
        return fields;
    }

    @Override
    public void close() {
        RedisSession last = session;
        if (last != null) {
            last.leave();
        }
        client.shutdown(0, settings.timeout().toMillis(), TimeUnit.MILLISECONDS);
        resources.shutdown(0, settings.timeout().toMillis(), TimeUnit.MILLISECONDS).awaitUninterruptibly();
    }
}
