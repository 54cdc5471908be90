package io.aiodb.store;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalDouble;

/** A named table of a {@link Store}. A handle follows its table through truncates and ends with its drop. */
public interface Table {
    /** The table's name. */
    String name();

    /** The store that it belongs to. */
    Store store();

    /** The value of a key, or null if the key is absent. */
    byte[] get(byte[] key);

    /**
     * Copies the value of a key into a buffer, from its position on, and sets the limit behind it.
     *
     * @return the value's length in bytes, or -1 if the key is absent; where the value is longer than what remains of the
     *     buffer, its length too, and the buffer is left as it was
     */
    default int get(ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        return Bytes.answer(get(Bytes.of(key)), value);
    }

    /** The rows of a range as they are now; writes go on and are not seen. To be closed. */
    Rows scan(Range range);

    /** Stores a row. */
    default void put(byte[] key, byte[] value, Durability durability) {
        Scratch.write(store(), durability, batch -> batch.put(this, ByteBuffer.wrap(key), ByteBuffer.wrap(value)));
    }

    /** Removes a row. That it is absent is no error. */
    default void delete(byte[] key, Durability durability) {
        Scratch.write(store(), durability, batch -> batch.delete(this, ByteBuffer.wrap(key)));
    }

    /** Appends to the value of a key; to an absent key's as if it were empty. */
    default void append(byte[] key, byte[] operand, Durability durability) {
        Scratch.write(store(), durability, batch -> batch.append(this, ByteBuffer.wrap(key), ByteBuffer.wrap(operand)));
    }

    /** Removes the rows from {@code from} (inclusive; empty = the first) to {@code to} (exclusive; empty = to the end). */
    default void deleteRange(byte[] from, byte[] to, Durability durability) {
        Scratch.write(store(), durability, batch -> batch.deleteRange(this, ByteBuffer.wrap(from), ByteBuffer.wrap(to)));
    }

    /** How many rows there are, about. */
    long estimatedRows();

    /** What is known of the table now. */
    default TableStatistics statistics() {
        return new TableStatistics(
                estimatedRows(), TableModes.AUTO, OptionalDouble.empty(), OptionalDouble.empty(), Map.of());
    }

    /**
     * Changes what of the table memory keeps by preference, at once and while it is used: nothing moves. Durable when it returns; a
     * truncate keeps it. Nothing is done where the table has these modes.
     *
     * @throws StoreException.Configuration if the modes contradict each other, or this table; nothing was changed
     * @throws StoreException.Unsupported if this store has none ({@link Capabilities#storageModes})
     */
    default void setModes(TableModes modes) {
        modes.refuseUnlessAuto(store().capabilities());
        // A closed store, or a dropped table, is told as elsewhere.
        estimatedRows();
    }

    /**
     * Removes all rows. Durable when it returns. Snapshots and scans that were made before still see them. After a crash
     * during the call the table has all of its rows or none.
     */
    void truncate();

    /**
     * Removes the table. Durable when it returns. Later uses of its handles fail, those through older snapshots too;
     * scans under way may go on or fail, in each case with {@link StoreException.NoSuchTable}.
     */
    void drop();
}
