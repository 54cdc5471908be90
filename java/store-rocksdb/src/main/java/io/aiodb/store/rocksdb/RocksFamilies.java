package io.aiodb.store.rocksdb;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.StringAppendOperator;

/**
 * A RocksDB with a column family for each table. A table's family is called by a number and the table's name: a truncate
 * makes a family with a higher number before it drops the old one, so a crash between the two loses nothing and leaves
 * nothing.
 */
final class RocksFamilies {
    private static final double BLOOM_BITS = 10;

    /** What all families are opened with. */
    record Settings(long cacheBytes, long writeBufferBytes) {}

    /** A column family that is closed when the last of its users lets go. */
    static final class Family {
        final ColumnFamilyHandle handle;
        private int uses = 1;

        Family(ColumnFamilyHandle handle) {
            this.handle = handle;
        }

        synchronized Family use() {
            uses++;
            return this;
        }

        synchronized void release() {
            if (--uses == 0) {
                handle.close();
            }
        }
    }

    private final StringAppendOperator append = new StringAppendOperator("");
    private final Cache cache;
    private final BloomFilter filter = new BloomFilter(BLOOM_BITS);
    private final ColumnFamilyOptions familyOptions;
    private final DBOptions options = new DBOptions().setCreateIfMissing(true);
    private final ColumnFamilyHandle unnamed;
    private long lastNumber;

    final RocksDB db;

    /** The families found, by the names of their tables. */
    final Map<String, Family> found = new TreeMap<>();

    RocksFamilies(Path directory, Settings settings) throws RocksDBException {
        cache = new LRUCache(settings.cacheBytes());
        BlockBasedTableConfig blocks = new BlockBasedTableConfig().setBlockCache(cache).setFilterPolicy(filter);
        familyOptions = new ColumnFamilyOptions()
                .setMergeOperator(append)
                .setWriteBufferSize(settings.writeBufferBytes())
                .setTableFormatConfig(blocks);
        List<byte[]> names;
        try (Options listing = new Options()) {
            names = new ArrayList<>(RocksDB.listColumnFamilies(listing, directory.toString()));
        }
        if (names.isEmpty()) {
            names.add(RocksDB.DEFAULT_COLUMN_FAMILY);
        }
        List<ColumnFamilyDescriptor> descriptors =
                names.stream().map(name -> new ColumnFamilyDescriptor(name, familyOptions)).toList();
        List<ColumnFamilyHandle> handles = new ArrayList<>();
        try {
            db = RocksDB.open(options, directory.toString(), descriptors, handles);
        } catch (RocksDBException failure) {
            closeOptions();
            throw failure;
        }
        unnamed = handles.get(indexOfDefault(names));
        Map<String, Long> numbers = new TreeMap<>();
        for (int position = 0; position < names.size(); position++) {
            if (handles.get(position) != unnamed) {
                add(new String(names.get(position), StandardCharsets.UTF_8), handles.get(position), numbers);
            }
        }
    }

    /** A new family for a table. */
    Family create(String table) throws RocksDBException {
        String name = ++lastNumber + "/" + table;
        return new Family(
                db.createColumnFamily(new ColumnFamilyDescriptor(name.getBytes(StandardCharsets.UTF_8), familyOptions)));
    }

    /** Removes a family; threads that use it may go on reading. */
    void drop(Family family) throws RocksDBException {
        db.dropColumnFamily(family.handle);
        family.release();
    }

    void close() {
        unnamed.close();
        db.close();
        closeOptions();
    }

    /** Of two families of one table, the older one is what an unfinished truncate left. */
    private void add(String name, ColumnFamilyHandle handle, Map<String, Long> numbers) throws RocksDBException {
        int slash = name.indexOf('/');
        long number = Long.parseLong(name.substring(0, slash));
        String table = name.substring(slash + 1);
        lastNumber = Math.max(lastNumber, number);
        Family family = new Family(handle);
        Family other = found.get(table);
        if (other != null && numbers.get(table) > number) {
            drop(family);
            return;
        }
        if (other != null) {
            drop(other);
        }
        found.put(table, family);
        numbers.put(table, number);
    }

    private void closeOptions() {
        options.close();
        familyOptions.close();
        filter.close();
        cache.close();
        append.close();
    }

    private static int indexOfDefault(List<byte[]> names) {
        for (int position = 0; position < names.size(); position++) {
            if (java.util.Arrays.equals(names.get(position), RocksDB.DEFAULT_COLUMN_FAMILY)) {
                return position;
            }
        }
        throw new AssertionError("RocksDB always has its default column family");
    }
}
