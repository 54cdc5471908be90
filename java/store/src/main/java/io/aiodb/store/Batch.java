package io.aiodb.store;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Operations that take effect together, in their order, in any tables of one store. Keys and values are copied as they
 * are added. A batch belongs to one thread at a time, and can be used again after {@link #clear}.
 */
public final class Batch {
    /** What an operation does. The numbers are those of the encoded form. */
    private static final byte PUT = 1;

    private static final byte DELETE = 2;
    private static final byte APPEND = 3;
    private static final byte DELETE_RANGE = 4;

    /** Kind, table, lengths of key and value. */
    private static final int HEADER_BYTES = 1 + 3 * Integer.BYTES;

    private static final int FIRST_CAPACITY_BYTES = 8 << 10;
    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final List<Table> tables = new ArrayList<>();
    private ByteBuffer bytes = direct(FIRST_CAPACITY_BYTES);
    private int operations;

    /** What {@link #replay} calls, in the order of the operations. The buffers are valid during the call. */
    public interface Visitor {
        void put(Table table, ByteBuffer key, ByteBuffer value);

        void delete(Table table, ByteBuffer key);

        void append(Table table, ByteBuffer key, ByteBuffer operand);

        /** An empty bound is the table's beginning or end. */
        void deleteRange(Table table, ByteBuffer from, ByteBuffer to);
    }

    /** Stores a row. */
    public Batch put(Table table, ByteBuffer key, ByteBuffer value) {
        Capabilities capabilities = table.store().capabilities();
        capabilities.checkKey(key.remaining());
        capabilities.checkValue(value.remaining());
        return add(PUT, table, key, value);
    }

    /** Removes a row. */
    public Batch delete(Table table, ByteBuffer key) {
        table.store().capabilities().checkKey(key.remaining());
        return add(DELETE, table, key, NOTHING);
    }

    /** Appends to the value of a key; to an absent key's as if it were empty. */
    public Batch append(Table table, ByteBuffer key, ByteBuffer operand) {
        Capabilities capabilities = table.store().capabilities();
        capabilities.checkKey(key.remaining());
        capabilities.checkValue(operand.remaining());
        return add(APPEND, table, key, operand);
    }

    /**
     * Removes the rows from {@code from} (inclusive; empty = the first) to {@code to} (exclusive; empty = to the end),
     * those that the batch has put before included. Where the bounds are the wrong way round there are none.
     */
    public Batch deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
        Capabilities capabilities = table.store().capabilities();
        capabilities.checkRangeBound(from.remaining());
        capabilities.checkRangeBound(to.remaining());
        return add(DELETE_RANGE, table, from, to);
    }

    /** How many operations there are. */
    public int size() {
        return operations;
    }

    /** Forgets all operations. */
    public void clear() {
        tables.clear();
        bytes.clear();
        operations = 0;
    }

    /** The tables in the order in which they first came up. */
    public List<Table> tables() {
        return Collections.unmodifiableList(tables);
    }

    /**
     * All operations in one direct buffer, for stores that take them at once: for each its kind (1 put, 2 delete, 3 append,
     * 4 range delete; one byte), the position of its table in {@link #tables}, the lengths of key and value (four bytes
     * each, little-endian), key and value. Read-only and valid until the batch is changed.
     */
    public ByteBuffer encoded() {
        return bytes.duplicate().flip().asReadOnlyBuffer();
    }

    /** Shows all operations to a visitor. */
    public void replay(Visitor visitor) {
        ByteBuffer rest = bytes.duplicate().order(ByteOrder.LITTLE_ENDIAN).flip();
        while (rest.hasRemaining()) {
            byte kind = rest.get();
            Table table = tables.get(rest.getInt());
            int keyLength = rest.getInt();
            int valueLength = rest.getInt();
            ByteBuffer key = take(rest, keyLength);
            ByteBuffer value = take(rest, valueLength);
            switch (kind) {
                case PUT -> visitor.put(table, key, value);
                case DELETE -> visitor.delete(table, key);
                case APPEND -> visitor.append(table, key, value);
                case DELETE_RANGE -> visitor.deleteRange(table, key, value);
                default -> throw new AssertionError("an operation of kind " + kind);
            }
        }
    }

    /** How much memory the batch holds on to, in bytes. */
    int capacityBytes() {
        return bytes.capacity();
    }

    private static ByteBuffer take(ByteBuffer rest, int length) {
        ByteBuffer taken = rest.slice(rest.position(), length);
        rest.position(rest.position() + length);
        return taken;
    }

    private Batch add(byte kind, Table table, ByteBuffer key, ByteBuffer value) {
        reserve((long) HEADER_BYTES + key.remaining() + value.remaining());
        bytes.put(kind).putInt(position(table)).putInt(key.remaining()).putInt(value.remaining());
        bytes.put(key.duplicate()).put(value.duplicate());
        operations++;
        return this;
    }

    /** Batches have few tables, most of them one. */
    private int position(Table table) {
        for (int position = 0; position < tables.size(); position++) {
            if (tables.get(position) == table) {
                return position;
            }
        }
        tables.add(table);
        return tables.size() - 1;
    }

    private void reserve(long wanted) {
        if (wanted <= bytes.remaining()) {
            return;
        }
        long needed = bytes.position() + wanted;
        if (needed > Integer.MAX_VALUE) {
            throw new StoreException.Limit("a batch of " + needed + " bytes: it may have at most " + Integer.MAX_VALUE
                    + "; split it");
        }
        int capacity = (int) Math.min(Integer.MAX_VALUE, Math.max(needed, 2L * bytes.capacity()));
        bytes = direct(capacity).put(bytes.flip());
    }

    private static ByteBuffer direct(int capacity) {
        return ByteBuffer.allocateDirect(capacity).order(ByteOrder.LITTLE_ENDIAN);
    }
}
