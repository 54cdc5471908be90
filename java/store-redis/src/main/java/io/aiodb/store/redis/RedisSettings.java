package io.aiodb.store.redis;

import io.aiodb.store.Durability;
import java.time.Duration;

/**
 * How a Redis store reaches its server, and what it expects of it.
 *
 * @param host of the server
 * @param port of the server
 * @param user null for the default one
 * @param password null for none
 * @param durability the strongest class of writes: a server that gives less is refused
 * @param timeout how long an answer may take
 * @param historyBytes what is kept for snapshots and scans while rows are changed
 */
record RedisSettings(
        String host,
        int port,
        String user,
        char[] password,
        Durability durability,
        Duration timeout,
        long historyBytes) {

    /** The server, for messages. */
    String server() {
        return "the Redis at " + host + ":" + port;
    }
}
