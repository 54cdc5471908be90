package io.aiodb.store.aiodb;

import io.aiodb.store.Batch;
import io.aiodb.store.Capabilities;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Statistics;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import io.aiodb.store.TableModes;
import io.aiodb.store.Tables;
import io.aiodb.store.ValueKind;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;

/**
 * A store of the engine {@code aiodb}. Every call is one crossing into native code; a scan crosses once for as many rows
 * as fit into a buffer.
 */
final class AiodbStore implements Store {
    static final String NAME = "aiodb";

    private static final Capabilities CAPABILITIES = new Capabilities(
            NAME, 64 << 10, 1 << 30, 448, Set.of(Durability.values()), true, true, true, true, true);

    /** Closes what nobody refers to any more and nobody has closed. */
    private static final Cleaner CLEANER = Cleaner.create();

    private final long handle;
    private final long intervalMillis;

    /** Of tables that are made without a word of it. */
    private final TableModes modes;

    private final Buffers buffers = new Buffers();

    /** One handle for each table that is used; guarded by itself, as is every change of what tables there are. */
    private final Map<String, AiodbTable> tables = new HashMap<>();

    AiodbStore(long handle, long intervalMillis, TableModes modes) {
        this.handle = handle;
        this.intervalMillis = intervalMillis;
        this.modes = modes;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }

    @Override
    public Table createTable(String name, ValueKind values) {
        return createTable(name, values, modes);
    }

    @Override
    public Table createTable(String name, ValueKind values, TableModes modes) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(values, "values");
        String keys = Native.name(modes.keys());
        synchronized (tables) {
            long made = Native.createTable(handle, name, values == ValueKind.FRAMES, keys, Native.name(modes.values()));
            AiodbTable table = new AiodbTable(this, name, made);
            tables.put(name, table);
            return table;
        }
    }

    @Override
    public Table table(String name) {
        Objects.requireNonNull(name, "name");
        synchronized (tables) {
            AiodbTable known = tables.get(name);
            if (known == null) {
                known = new AiodbTable(this, name, Native.table(handle, name));
                tables.put(name, known);
            }
            return known;
        }
    }

    @Override
    public List<String> tableNames() {
        return Native.tableNames(handle).lines().toList();
    }

    @Override
    public void write(Batch batch, Durability durability) {
        List<Table> tables = batch.tables();
        long[] handles = new long[tables.size()];
        for (int position = 0; position < handles.length; position++) {
            handles[position] = own(tables.get(position)).handle();
        }
        ByteBuffer operations = batch.encoded();
        Native.write(handle, operations, operations.limit(), handles, durability.ordinal(), intervalMillis);
    }

    @Override
    public Snapshot snapshot() {
        return new AiodbSnapshot(this, Native.snapshot(handle));
    }

    @Override
    public void sync() {
        Native.sync(handle);
    }

    @Override
    public Statistics statistics() {
        Map<String, Long> counters = new LinkedHashMap<>();
        List<String> warnings = new ArrayList<>();
        Native.statistics(handle).lines().forEach(line -> {
            int tab = line.indexOf('\t');
            String name = line.substring(0, tab);
            String value = line.substring(tab + 1);
            if (name.equals("warning")) {
                warnings.add(value);
            } else {
                counters.put(name, Long.parseLong(value));
            }
        });
        return new Statistics(counters.remove("disk_bytes"), counters.remove("rows"), counters, warnings);
    }

    @Override
    public void setMemoryBytes(OptionalLong bytes) {
        if (bytes.isPresent() && bytes.getAsLong() < 0) {
            throw new StoreException.Configuration("memory_bytes = " + bytes.getAsLong() + ": give a number of bytes");
        }
        Native.setMemoryBytes(handle, bytes.orElse(Native.ENGINE_DECIDES));
    }

    @Override
    public void close() {
        synchronized (tables) {
            tables.clear();
            Native.close(handle);
        }
    }

    long handle() {
        return handle;
    }

    Buffers buffers() {
        return buffers;
    }

    Cleaner.Cleanable closeWith(Object owner, Runnable close) {
        return CLEANER.register(owner, close);
    }

    /** No table that is made meanwhile has the name of this one. */
    void truncate(AiodbTable table) {
        synchronized (tables) {
            Native.truncateTable(handle, table.handle());
        }
    }

    /** See {@link #truncate}. */
    void setModes(AiodbTable table, TableModes modes) {
        synchronized (tables) {
            Native.setTableModes(handle, table.handle(), Native.name(modes.keys()), Native.name(modes.values()));
        }
    }

    void drop(AiodbTable table) {
        synchronized (tables) {
            Native.dropTable(handle, table.handle());
            tables.remove(table.name(), table);
        }
    }

    /** A table as one of this store. */
    AiodbTable own(Table table) {
        return Tables.own(table, this, AiodbTable.class);
    }

    byte[] get(AiodbTable table, long snapshot, byte[] key) {
        CAPABILITIES.checkKey(key.length);
        ByteBuffer direct = buffers.key(ByteBuffer.wrap(key));
        return Native.getArray(handle, table.handle(), snapshot, direct, direct.limit());
    }

    int get(AiodbTable table, long snapshot, ByteBuffer key, ByteBuffer value) {
        CAPABILITIES.checkKey(key.remaining());
        ByteBuffer directKey = buffers.key(key);
        if (value.isReadOnly()) {
            throw new ReadOnlyBufferException();
        }
        if (!value.isDirect()) {
            byte[] bytes = Native.getArray(handle, table.handle(), snapshot, directKey, directKey.limit());
            if (bytes != null && bytes.length <= value.remaining()) {
                value.put(value.position(), bytes).limit(value.position() + bytes.length);
            }
            return bytes == null ? -1 : bytes.length;
        }
        int length = Native.get(
                handle,
                table.handle(),
                snapshot,
                directKey,
                directKey.limit(),
                value,
                value.position(),
                value.remaining());
        if (length >= 0 && length <= value.remaining()) {
            value.limit(value.position() + length);
        }
        return length;
    }

    Rows scan(AiodbTable table, long snapshot, Range range) {
        ByteBuffer lower = range.lower().orElse(Buffers.NOTHING);
        ByteBuffer upper = range.upper().orElse(Buffers.NOTHING);
        int flags = (range.lower().isPresent() ? Native.FROM : 0)
                | (range.isLowerExcluded() ? Native.FROM_EXCLUDED : 0)
                | (range.upper().isPresent() ? Native.TO : 0)
                | (range.isUpperIncluded() ? Native.TO_INCLUDED : 0)
                | (range.isBackward() ? Native.BACKWARD : 0)
                | (range.isKeysOnly() ? Native.KEYS_ONLY : 0);
        ByteBuffer bounds = buffers.bounds(lower, upper);
        long scan = Native.scan(
                handle, table.handle(), snapshot, bounds, lower.remaining(), upper.remaining(), flags, range.limit());
        return new AiodbRows(this, scan);
    }
}
