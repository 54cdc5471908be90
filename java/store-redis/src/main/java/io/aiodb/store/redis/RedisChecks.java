package io.aiodb.store.redis;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Refuses a server that keeps rows less well than was asked for, and says what to change there. */
final class RedisChecks {
    private final RedisSession session;
    private final RedisSettings settings;

    RedisChecks(RedisSession session, RedisSettings settings) {
        this.session = session;
        this.settings = settings;
    }

    void check() {
        Map<String, String> info = RedisServer.fields(session.await(session.commands().info()));
        List<String> wrong = new ArrayList<>();
        if (!"master".equals(info.get("role"))) {
            wrong.add("it is a replica: name the master");
        }
        if (!"0".equals(info.getOrDefault("cluster_enabled", "0"))) {
            wrong.add("it is part of a cluster: name one that is not");
        }
        require(wrong, "maxmemory-policy", "noeviction", "rows would be evicted");
        long longest = Long.parseLong(session.configured("proto-max-bulk-len"));
        if (longest < RedisStore.MAX_VALUE_BYTES) {
            wrong.add("`proto-max-bulk-len` is " + longest + ": set it to " + RedisStore.MAX_VALUE_BYTES);
        }
        if (settings.durability() != Durability.NONE) {
            require(wrong, "appendonly", "yes", "rows would be lost when it ends");
            checkSyncs(wrong);
        }
        if (!wrong.isEmpty()) {
            throw new StoreException.Configuration(settings.server() + " cannot have this store with `durability` "
                    + RedisStore.spelled(settings.durability()) + ": " + String.join("; ", wrong));
        }
    }

    private void checkSyncs(List<String> wrong) {
        String syncs = session.syncs().configured();
        if (settings.durability() == Durability.SYNC && !syncs.equals(RedisSyncs.ALWAYS)) {
            wrong.add("`appendfsync` is " + syncs + ", so acknowledged rows would not survive a power cut: set it to always"
                    + " there, or `durability` to interval here");
        } else if (syncs.equals("no")) {
            wrong.add("`appendfsync` is no, so it is not known when rows survive a power cut: set it to everysec or always");
        }
        require(wrong, "no-appendfsync-on-rewrite", "no", "nothing would be synced while its file is rewritten");
    }

    private void require(List<String> wrong, String name, String value, String otherwise) {
        String found = session.configured(name);
        if (!found.equals(value)) {
            wrong.add("`" + name + "` is " + found + ", so " + otherwise + ": set it to " + value);
        }
    }

}
