package io.aiodb.store.rocksdb;

import io.aiodb.store.Batch;
import io.aiodb.store.Bytes;
import io.aiodb.store.Keys;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.WriteBatch;

/** Turns a batch into RocksDB's. */
final class RocksWrites implements Batch.Visitor {
    /** Behind every key. */
    private static final byte[] END = new byte[RocksStore.MAX_KEY_BYTES + 1];

    static {
        Arrays.fill(END, (byte) 0xff);
    }

    private final RocksStore store;
    private final WriteBatch writes;

    RocksWrites(RocksStore store, WriteBatch writes) {
        this.store = store;
        this.writes = writes;
    }

    @Override
    public void put(Table table, ByteBuffer key, ByteBuffer value) {
        add(() -> writes.put(family(table), key, value));
    }

    @Override
    public void delete(Table table, ByteBuffer key) {
        add(() -> writes.delete(family(table), key));
    }

    @Override
    public void append(Table table, ByteBuffer key, ByteBuffer operand) {
        add(() -> writes.merge(family(table), Bytes.of(key), Bytes.of(operand)));
    }

    @Override
    public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
        byte[] end = to.hasRemaining() ? Bytes.of(to) : END;
        if (Keys.compare(from, ByteBuffer.wrap(end)) < 0) {
            add(() -> writes.deleteRange(family(table), Bytes.of(from), end));
        }
    }

    private interface Addition {
        void run() throws org.rocksdb.RocksDBException;
    }

    private static void add(Addition addition) {
        RocksStore.translated(() -> {
            addition.run();
            return null;
        });
    }

    private ColumnFamilyHandle family(Table table) {
        return store.own(table).place().handle;
    }
}
