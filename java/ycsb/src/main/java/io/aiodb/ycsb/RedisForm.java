package io.aiodb.ycsb;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.Response;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;

/** What a record is in Redis. */
interface RedisForm {
    /** Reads a record; false if it is absent. */
    boolean read(Jedis redis, byte[] key, Set<String> fields, Map<String, ByteIterator> result);

    /** Reads those of several records that are there, in one round trip. */
    List<HashMap<String, ByteIterator>> readAll(Jedis redis, List<byte[]> keys, Set<String> fields);

    /** Writes a whole record. The answer is to be looked at after the pipeline's end. */
    Response<?> insert(Pipeline pipeline, byte[] key, Map<String, ByteIterator> values);

    /** Writes some fields of a record; false if it is absent and that was seen. */
    boolean update(Jedis redis, byte[] key, Map<String, ByteIterator> values);

    /** The form of this name. */
    static RedisForm of(String name, Record record) {
        return switch (name) {
            case "hash" -> new Hashes();
            case "string" -> new Strings(record);
            default -> throw new IllegalArgumentException(RedisClient.FORM + " = " + name + ": give hash or string");
        };
    }

    /** A hash with the record's fields. */
    final class Hashes implements RedisForm {
        @Override
        public boolean read(Jedis redis, byte[] key, Set<String> fields, Map<String, ByteIterator> result) {
            fill(redis.hgetAll(key), fields, result);
            return !result.isEmpty();
        }

        @Override
        public List<HashMap<String, ByteIterator>> readAll(Jedis redis, List<byte[]> keys, Set<String> fields) {
            List<Response<Map<byte[], byte[]>>> answers = new ArrayList<>(keys.size());
            try (Pipeline pipeline = redis.pipelined()) {
                keys.forEach(key -> answers.add(pipeline.hgetAll(key)));
            }
            List<HashMap<String, ByteIterator>> records = new ArrayList<>(keys.size());
            for (Response<Map<byte[], byte[]>> answer : answers) {
                HashMap<String, ByteIterator> record = new HashMap<>();
                fill(answer.get(), fields, record);
                if (!record.isEmpty()) {
                    records.add(record);
                }
            }
            return records;
        }

        @Override
        public Response<?> insert(Pipeline pipeline, byte[] key, Map<String, ByteIterator> values) {
            return pipeline.hset(key, bytes(values));
        }

        @Override
        public boolean update(Jedis redis, byte[] key, Map<String, ByteIterator> values) {
            redis.hset(key, bytes(values));
            return true;
        }

        private static Map<byte[], byte[]> bytes(Map<String, ByteIterator> values) {
            Map<byte[], byte[]> fields = new HashMap<>();
            values.forEach((name, value) -> fields.put(name.getBytes(StandardCharsets.UTF_8), value.toArray()));
            return fields;
        }

        private static void fill(Map<byte[], byte[]> found, Set<String> wanted, Map<String, ByteIterator> result) {
            found.forEach((field, value) -> {
                String name = new String(field, StandardCharsets.UTF_8);
                if (wanted == null || wanted.contains(name)) {
                    result.put(name, new ByteArrayByteIterator(value));
                }
            });
        }
    }

    /** One string with all fields, as a row of a store has them. */
    final class Strings implements RedisForm {
        private final Record record;

        Strings(Record record) {
            this.record = record;
        }

        @Override
        public boolean read(Jedis redis, byte[] key, Set<String> fields, Map<String, ByteIterator> result) {
            byte[] value = redis.get(key);
            if (value == null) {
                return false;
            }
            record.decode(value, fields, result);
            return true;
        }

        @Override
        public List<HashMap<String, ByteIterator>> readAll(Jedis redis, List<byte[]> keys, Set<String> fields) {
            List<HashMap<String, ByteIterator>> records = new ArrayList<>(keys.size());
            for (byte[] value : redis.mget(keys.toArray(byte[][]::new))) {
                if (value != null) {
                    records.add(record.decoded(value, fields));
                }
            }
            return records;
        }

        @Override
        public Response<?> insert(Pipeline pipeline, byte[] key, Map<String, ByteIterator> values) {
            return pipeline.set(key, record.encode(values));
        }

        @Override
        public boolean update(Jedis redis, byte[] key, Map<String, ByteIterator> values) {
            if (record.isWhole(values)) {
                redis.set(key, record.encode(values));
                return true;
            }
            byte[] value = redis.get(key);
            if (value == null) {
                return false;
            }
            redis.set(key, record.update(value, values));
            return true;
        }
    }
}
