package io.aiodb.store.redis;

import io.aiodb.store.Batch;
import io.aiodb.store.Bytes;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** A batch as the arguments of the script {@code write}. */
final class RedisWrites implements Batch.Visitor {
    private static final byte[] PUT = RedisSession.bytes("put");
    private static final byte[] DELETE = RedisSession.bytes("delete");
    private static final byte[] APPEND = RedisSession.bytes("append");
    private static final byte[] RANGE = RedisSession.bytes("range");
    private static final byte[] NOTHING = {};

    private final RedisStore store;
    private final List<byte[]> arguments = new ArrayList<>();

    RedisWrites(RedisStore store) {
        this.store = store;
    }

    /** The arguments for the operations, four each. */
    List<byte[]> arguments() {
        return arguments;
    }

    @Override
    public void put(Table table, ByteBuffer key, ByteBuffer value) {
        add(PUT, table, key, Bytes.of(value));
    }

    @Override
    public void delete(Table table, ByteBuffer key) {
        add(DELETE, table, key, NOTHING);
    }

    @Override
    public void append(Table table, ByteBuffer key, ByteBuffer operand) {
        add(APPEND, table, key, Bytes.of(operand));
    }

    @Override
    public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
        add(RANGE, table, from, Bytes.of(to));
    }

    private void add(byte[] kind, Table table, ByteBuffer key, byte[] value) {
        arguments.add(kind);
        arguments.add(RedisSession.bytes(store.own(table).place()));
        arguments.add(Bytes.of(key));
        arguments.add(value);
    }
}
