package io.aiodb.store;

import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * Named tables of ordered rows. A row is a key, 1 to {@link Capabilities#maxKeyBytes} bytes, and a value, 0 to
 * {@link Capabilities#maxValueBytes} bytes. Keys are ordered as sequences of unsigned bytes; a prefix comes before what
 * it is a prefix of.
 *
 * <p><b>Threads.</b> Stores, tables and snapshots may be used by many threads at once. A {@link Batch} and {@link Rows}
 * belong to one thread at a time.
 *
 * <p><b>Buffers.</b> Byte arrays and buffers that are passed in are read before the call returns, and never kept. From a
 * buffer the bytes between its position and its limit count, and neither is moved. Heap and direct buffers do; direct
 * ones spare a copy. Arrays that are returned belong to the caller. Buffers of {@link Rows} belong to them.
 *
 * <p><b>Atomic and isolated.</b> A batch is there as a whole or not at all, after any fault. A scan or a snapshot sees a
 * batch as a whole or not at all. Gets that follow each other may see the parts of a batch appear one by one.
 *
 * <p><b>Failures</b> are {@link StoreException}s. Using what was closed is {@link StoreException.Closed}, using a table
 * that was dropped {@link StoreException.NoSuchTable}, and null a {@link NullPointerException}: the virtual machine
 * never crashes.
 */
public interface Store extends AutoCloseable {
    /** What this store can do. Answered by closed stores too. */
    Capabilities capabilities();

    /**
     * Makes a table. Durable when it returns.
     *
     * @param name 1 to 255 bytes of UTF-8 without control characters
     * @throws StoreException.TableExists if there is one of this name
     * @throws StoreException.TableName if this cannot be a name
     */
    Table createTable(String name, ValueKind values);

    /** Makes a table of any values, as {@link #createTable(String, ValueKind)}. */
    default Table createTable(String name) {
        return createTable(name, ValueKind.BYTES);
    }

    /**
     * Makes a table with storage modes, as {@link #createTable(String, ValueKind)}, which leaves them to the parameters of the store.
     * Where anything but the modes could be made durable, the table is there without them, and the failure says so.
     *
     * @throws StoreException.Configuration if the modes contradict each other, or this store's tables; no table is made
     * @throws StoreException.Unsupported if this store has none ({@link Capabilities#storageModes}); no table is made
     */
    default Table createTable(String name, ValueKind values, TableModes modes) {
        modes.refuseUnlessAuto(capabilities());
        return createTable(name, values);
    }

    /**
     * The table of this name.
     *
     * @throws StoreException.NoSuchTable if there is none
     */
    Table table(String name);

    /** The table of this name, made for any values if it is missing. */
    default Table tableOrCreate(String name) {
        return tableOrCreate(name, ValueKind.BYTES);
    }

    /** The table of this name, made if it is missing. */
    default Table tableOrCreate(String name, ValueKind values) {
        try {
            return table(name);
        } catch (StoreException.NoSuchTable missing) {
            try {
                return createTable(name, values);
            } catch (StoreException.TableExists anotherThreadWasFaster) {
                return table(name);
            }
        }
    }

    /** The names of all tables, in order. */
    List<String> tableNames();

    /**
     * Applies all operations of a batch in their order, or none. The batch may be changed and used again afterwards.
     *
     * @throws StoreException.NoSuchTable if one of its tables was dropped, or is of another store
     * @throws StoreException.Limit if it is more than the store writes at once
     */
    void write(Batch batch, Durability durability);

    /** All tables as they are now, for reads while they change. To be closed; it keeps space from being given back. */
    Snapshot snapshot();

    /** Everything acknowledged before survives a power cut when this returns. */
    void sync();

    /** Sizes and counters now. */
    Statistics statistics();

    /**
     * Changes what the store may take of memory in all, until it is closed; empty leaves it to the store. What is above that is given back
     * in the background, and no call waits for it.
     *
     * @param bytes as the parameter of the store that says it ({@code memory_bytes})
     * @throws StoreException.Configuration if it is less than a store takes that has nothing yet; nothing was changed
     * @throws StoreException.Unsupported if this store has no such budget, of which {@link #statistics} would have
     *     {@code memory_budget_bytes}
     */
    default void setMemoryBytes(OptionalLong bytes) {
        Objects.requireNonNull(bytes, "bytes");
        // A closed store is told as elsewhere.
        tableNames();
        throw new StoreException.Unsupported("a store of kind " + capabilities().name()
                + " has no budget of memory that can be changed: its own configuration says what it takes");
    }

    /**
     * Makes everything durable and releases the store, its snapshots and scans. Waits for calls that are under way.
     * Closing twice does nothing.
     *
     * @throws StoreException.Failed if something acknowledged in a class other than sync could not be made durable
     */
    @Override
    void close();
}
