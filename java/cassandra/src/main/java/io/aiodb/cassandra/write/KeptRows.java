package io.aiodb.cassandra.write;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** The appends of an update, in memory, as a table that has nothing else. It is read forward, and not written. */
final class KeptRows implements Table {
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0).asReadOnlyBuffer();

    private final Table table;
    private final NavigableMap<byte[], byte[]> rows = new TreeMap<>(Arrays::compareUnsigned);

    /** @param table that the appends are of */
    KeptRows(Table table) {
        this.table = table;
    }

    /** Appends to the value of a key. */
    void append(ByteBuffer key, ByteBuffer operand) {
        rows.merge(Bytes.of(key), Bytes.of(operand), KeptRows::joined);
    }

    private static byte[] joined(byte[] value, byte[] operand) {
        byte[] joined = Arrays.copyOf(value, value.length + operand.length);
        System.arraycopy(operand, 0, joined, value.length, operand.length);
        return joined;
    }

    @Override
    public String name() {
        return table.name();
    }

    @Override
    public Store store() {
        return table.store();
    }

    @Override
    public byte[] get(byte[] key) {
        byte[] value = rows.get(key);
        return value == null ? null : value.clone();
    }

    @Override
    public Rows scan(Range range) {
        if (range.isBackward()) {
            throw refused();
        }
        return new Scan(range);
    }

    @Override
    public long estimatedRows() {
        return rows.size();
    }

    @Override
    public void truncate() {
        throw refused();
    }

    @Override
    public void drop() {
        throw refused();
    }

    private static StoreException refused() {
        return new StoreException.Unsupported("the rows of an unfinished update are read forward only, and go when it is finished");
    }

    private final class Scan implements Rows {
        private final Range range;
        private final Iterator<Map.Entry<byte[], byte[]>> rest;
        private long given;
        private ByteBuffer key = NOTHING;
        private ByteBuffer value = NOTHING;

        Scan(Range range) {
            this.range = range;
            this.rest = range.lower()
                    .map(lower -> rows.tailMap(Bytes.of(lower), !range.isLowerExcluded()))
                    .orElse(rows)
                    .entrySet()
                    .iterator();
        }

        @Override
        public boolean next() {
            if (given == range.limit() || !rest.hasNext()) {
                return false;
            }
            Map.Entry<byte[], byte[]> row = rest.next();
            if (!range.isBelowUpper(ByteBuffer.wrap(row.getKey()))) {
                given = range.limit();
                return false;
            }
            given++;
            key = ByteBuffer.wrap(row.getKey()).asReadOnlyBuffer();
            value = range.isKeysOnly() ? NOTHING : ByteBuffer.wrap(row.getValue()).asReadOnlyBuffer();
            return true;
        }

        @Override
        public ByteBuffer key() {
            return key;
        }

        @Override
        public ByteBuffer value() {
            return value;
        }

        @Override
        public void close() {}
    }
}
