package io.aiodb.ycsb;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.workloads.CoreWorkload;

/**
 * YCSB over the Redis protocol; each thread has a connection. The key of a record is the name of its table, a colon, and its
 * own. For scans all keys lie in a sorted set too, in the order of their bytes; it is kept only where the workload scans.
 * Properties:
 *
 * <ul>
 *   <li>{@code redis.host} (default 127.0.0.1), {@code redis.port} (6379), {@code redis.password}
 *   <li>{@code redis.form}: what a record is: {@code hash} (default), or {@code string}, see {@link Record}: an update of
 *       some fields of a string reads it first, and of two at the same time one may be lost
 *   <li>{@code redis.timeout_millis}: how long an answer may take; default 60000
 * </ul>
 */
public final class RedisClient extends DB {
    static final String FORM = "redis.form";

    private static final String HOST = "redis.host";
    private static final String PORT = "redis.port";
    private static final String PASSWORD = "redis.password";
    private static final String TIMEOUT = "redis.timeout_millis";

    /** The greatest member of a sorted set whose scores are equal. */
    private static final byte[] END = bytes("+");

    private final Shared shared = Shared.ofThisProcess();
    private Jedis redis;
    private RedisForm form;
    private boolean scanned;

    @Override
    public void init() {
        Properties properties = getProperties();
        String server = properties.getProperty(HOST, "127.0.0.1") + ":" + properties.getProperty(PORT, "6379");
        try {
            form = RedisForm.of(properties.getProperty(FORM, "hash"), new Record(properties));
            scanned = Double.parseDouble(properties.getProperty(CoreWorkload.SCAN_PROPORTION_PROPERTY, "0")) > 0;
            DefaultJedisClientConfig configuration = DefaultJedisClientConfig.builder()
                    .password(properties.getProperty(PASSWORD))
                    .socketTimeoutMillis(Integer.parseInt(properties.getProperty(TIMEOUT, "60000")))
                    .build();
            redis = new Jedis(HostAndPort.from(server), configuration);
            redis.ping();
        } catch (RuntimeException failure) {
            shared.refuse("use Redis at " + server, failure);
        }
    }

    @Override
    public void cleanup() {
        redis.close();
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        try {
            return form.read(redis, name(table, key), fields, result) ? Status.OK : Status.NOT_FOUND;
        } catch (RuntimeException failure) {
            return shared.failed("the read of", key, failure);
        }
    }

    @Override
    public Status scan(
            String table, String startKey, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
        try {
            byte[] from = bytes("[" + table + ":" + startKey);
            List<byte[]> keys = redis.zrangeByLex(index(table), from, END, 0, count);
            if (!keys.isEmpty()) {
                result.addAll(form.readAll(redis, keys, fields));
            }
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the scan from", startKey, failure);
        }
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        byte[] name = name(table, key);
        try {
            Response<?> inserted;
            Response<Long> indexed = null;
            try (Pipeline pipeline = redis.pipelined()) {
                inserted = form.insert(pipeline, name, values);
                if (scanned) {
                    indexed = pipeline.zadd(index(table), 0, name);
                }
            }
            inserted.get();
            if (indexed != null) {
                indexed.get();
            }
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the insert of", key, failure);
        }
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        try {
            return form.update(redis, name(table, key), values) ? Status.OK : Status.NOT_FOUND;
        } catch (RuntimeException failure) {
            return shared.failed("the update of", key, failure);
        }
    }

    @Override
    public Status delete(String table, String key) {
        try {
            redis.del(name(table, key));
            redis.zrem(index(table), name(table, key));
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the delete of", key, failure);
        }
    }

    private static byte[] name(String table, String key) {
        return bytes(table + ":" + key);
    }

    private static byte[] index(String table) {
        return bytes(table + "!keys");
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
