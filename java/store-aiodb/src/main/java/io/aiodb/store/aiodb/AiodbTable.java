package io.aiodb.store.aiodb;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.Table;
import io.aiodb.store.TableModes;
import io.aiodb.store.TableStatistics;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalDouble;

/** A table of an {@link AiodbStore}. */
final class AiodbTable implements Table {
    private final AiodbStore store;
    private final String name;
    private final long handle;

    AiodbTable(AiodbStore store, String name, long handle) {
        this.store = store;
        this.name = name;
        this.handle = handle;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Store store() {
        return store;
    }

    @Override
    public byte[] get(byte[] key) {
        return store.get(this, Native.LATEST, key);
    }

    @Override
    public int get(ByteBuffer key, ByteBuffer value) {
        return store.get(this, Native.LATEST, key, value);
    }

    @Override
    public Rows scan(Range range) {
        return store.scan(this, Native.LATEST, range);
    }

    @Override
    public long estimatedRows() {
        return Native.estimatedRows(store.handle(), handle);
    }

    @Override
    public TableStatistics statistics() {
        Map<String, String> lines = new HashMap<>();
        Native.tableStatistics(store.handle(), handle).lines().forEach(line -> {
            int tab = line.indexOf('\t');
            lines.put(line.substring(0, tab), line.substring(tab + 1));
        });
        TableModes modes = new TableModes(Native.mode(lines.remove("keys")), Native.mode(lines.remove("values")));
        OptionalDouble keysInMemory = share(lines.remove("keys_in_memory_ratio"));
        OptionalDouble valuesInMemory = share(lines.remove("values_in_memory_ratio"));
        long rows = Long.parseLong(lines.remove("rows"));
        Map<String, Long> counters = new HashMap<>();
        lines.forEach((name, count) -> counters.put(name, Long.parseLong(count)));
        return new TableStatistics(rows, modes, keysInMemory, valuesInMemory, counters);
    }

    private static OptionalDouble share(String line) {
        return line == null ? OptionalDouble.empty() : OptionalDouble.of(Double.parseDouble(line));
    }

    @Override
    public void setModes(TableModes modes) {
        store.setModes(this, modes);
    }

    @Override
    public void truncate() {
        store.truncate(this);
    }

    @Override
    public void drop() {
        store.drop(this);
    }

    long handle() {
        return handle;
    }
}
