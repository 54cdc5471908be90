package io.aiodb.store.redis;

import io.aiodb.store.Durability;
import io.aiodb.store.Parameters;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.Store;
import io.aiodb.store.StoreProvider;
import java.nio.file.Path;
import java.time.Duration;

/**
 * Opens stores whose rows lie on a Redis server, of version 6.2 or later, that is there already. The directory has the
 * store's identity only, and is needed to open it again. Parameters:
 *
 * <ul>
 *   <li>{@code host}: default 127.0.0.1
 *   <li>{@code port}: default 6379
 *   <li>{@code user}: default none
 *   <li>{@code password_file}: a file whose first line is the password; default none
 *   <li>{@code name}: what the names of the store's keys on the server begin with, behind {@code aiodb:}; default its identity
 *   <li>{@code durability}: the strongest class that writes may have: {@code sync} (default) needs a server with
 *       {@code appendonly yes} and {@code appendfsync always}, {@code interval} one with {@code appendfsync everysec} or
 *       {@code always}, {@code none} takes any
 *   <li>{@code timeout_millis}: how long an answer may take; 100 to 3600000, default 10000
 *   <li>{@code history_bytes}: what is kept, in this process, of rows that are changed while snapshots and scans are open;
 *       where it does not suffice, the oldest of these are ended. Default 67108864
 *   <li>{@code owner}: a word for whoever the store belongs to; another owner's directory is refused. Default none
 * </ul>
 */
public final class RedisProvider implements StoreProvider {
    private static final long MAX_HISTORY_BYTES = 1L << 40;

    @Override
    public String name() {
        return RedisStore.NAME;
    }

    @Override
    public Store open(Path directory, Parameters parameters) {
        String host = parameters.text("host", "127.0.0.1");
        int port = (int) parameters.number("port", 6379, 1, 65_535);
        String user = parameters.text("user", null);
        String firstLine = parameters.firstLine("password_file");
        char[] password = firstLine == null ? null : firstLine.toCharArray();
        String name = parameters.text("name", null);
        Durability durability = parameters.choice("durability", Durability.SYNC);
        Duration timeout = Duration.ofMillis(parameters.number("timeout_millis", 10_000, 100, 3_600_000));
        long historyBytes = parameters.number("history_bytes", 64 << 20, 0, MAX_HISTORY_BYTES);
        String owner = parameters.text("owner", null);
        parameters.refuseOthers();
        return ServerDirectory.openStore(directory, RedisStore.NAME, owner, own -> {
            String prefix = "aiodb:" + (name == null ? own.id() : name) + ":";
            RedisSettings settings = new RedisSettings(host, port, user, password, durability, timeout, historyBytes);
            return new RedisStore(own, settings, prefix);
        });
    }
}
