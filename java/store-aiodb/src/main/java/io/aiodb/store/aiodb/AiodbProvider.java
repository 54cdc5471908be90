package io.aiodb.store.aiodb;

import io.aiodb.store.Durability;
import io.aiodb.store.Parameters;
import io.aiodb.store.StorageMode;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.StoreProvider;
import io.aiodb.store.TableModes;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Opens aiodb stores. Parameters:
 *
 * <ul>
 *   <li>{@code interval_millis}: how much a power cut may take of writes in class interval; 1 to 3600000, default 10000
 *   <li>{@code memory_bytes}: memory that the store may take in all, caches and memtables included; default a quarter of what
 *       the machine has or the control group allows, at least 64 MiB. {@link Store#setMemoryBytes} changes it
 *   <li>{@code memory_shared_by}: how many stores, 1 (default) to 1000, share that default
 *   <li>{@code cache_bytes}: memory for values read lately, a part of all; default 0, none
 *   <li>{@code cache_writes}: whether values written lately are kept there too: {@code yes} or {@code no} (default)
 *   <li>{@code block_cache_bytes}: memory for blocks of the index of tables of kind {@code lsm}; default half of
 *       all, from 8 MiB to 1 GiB
 *   <li>{@code segment_bytes}: bytes of a segment file, a power of two from 65536 to 1073741824, fixed when the store is
 *       made; default 33554432
 *   <li>{@code max_open_files}: how many segment files are open at a time, 8 to 1000000000; default 0, most of what the
 *       process may have
 *   <li>{@code compression}: of the values of tables made from now on: {@code none} (default), {@code lz4}, {@code zstd}
 *   <li>{@code index}: of tables made from now on: {@code lsm} (default), sorted runs, whose inserts stay fast where the keys do
 *       not fit in memory; {@code lmdb}, for tables whose keys do
 *   <li>{@code inline_bytes}: of tables made from now on: values of up to so many bytes, 0 (default) to 1024, lie in the index
 *       too, so that a get of one reads the disk once at most; not with {@code index=lmdb}
 *   <li>{@code block_compression}: of the index of tables made from now on, with the values that lie in it: {@code none}
 *       (default), {@code lz4}, {@code zstd}; not with {@code index=lmdb}
 *   <li>{@code keys}, {@code values}: what of tables made from now on memory keeps by preference, unless they are made with {@link
 *       TableModes} of their own: {@code auto} (default), {@code memory} or {@code disk}. {@code keys=disk} not beside {@code
 *       values=memory}, and not with {@code index=lmdb}
 *   <li>{@code also}: further directories, each on a disk of its own, separated by commas; default none. How many there are
 *       is fixed when the store is made. The first, {@code directory}, has the indexes too
 * </ul>
 */
public final class AiodbProvider implements StoreProvider {
    /** How values of new tables, or their indexes, are compressed. */
    enum Compression {
        NONE,
        LZ4,
        ZSTD
    }

    /** The ordered index of new tables. */
    enum Index {
        LMDB,
        LSM
    }

    /** An answer of a parameter. */
    enum Answer {
        YES,
        NO
    }

    private static final long MAX_INTERVAL_MILLIS = 3_600_000;
    private static final long MAX_CACHE_BYTES = 1L << 44;
    private static final long MAX_INLINE_BYTES = 1024;
    private static final long MOST_SHARING = 1000;
    private static final long LEAST_OPEN_FILES = 8;
    private static final long MOST_OPEN_FILES = 1_000_000_000;

    @Override
    public String name() {
        return AiodbStore.NAME;
    }

    @Override
    public Store open(Path directory, Parameters parameters) {
        long intervalMillis = parameters.number("interval_millis", 10_000, 1, MAX_INTERVAL_MILLIS);
        long memoryBytes = parameters.number("memory_bytes", Native.ENGINE_DECIDES, 1, MAX_CACHE_BYTES);
        int memorySharedBy = (int) parameters.number("memory_shared_by", 1, 1, MOST_SHARING);
        long cacheBytes = parameters.number("cache_bytes", 0, 0, MAX_CACHE_BYTES);
        boolean cacheWrites = parameters.choice("cache_writes", Answer.NO) == Answer.YES;
        long blockCacheBytes = parameters.number("block_cache_bytes", Native.ENGINE_DECIDES, 0, MAX_CACHE_BYTES);
        long segmentBytes = parameters.number("segment_bytes", 32 << 20, 64 << 10, 1 << 30);
        long maxOpenFiles = parameters.number("max_open_files", 0, LEAST_OPEN_FILES, MOST_OPEN_FILES);
        Compression compression = parameters.choice("compression", Compression.NONE);
        Index index = parameters.choice("index", Index.LSM);
        int inlineBytes = (int) parameters.number("inline_bytes", 0, 0, MAX_INLINE_BYTES);
        if (inlineBytes > 0 && index != Index.LSM) {
            throw new StoreException.Configuration(
                    "inline_bytes = " + inlineBytes + ": an index=lmdb has no values: leave one of both out");
        }
        Compression blockCompression = parameters.choice("block_compression", Compression.NONE);
        if (blockCompression != Compression.NONE && index != Index.LSM) {
            throw new StoreException.Configuration("block_compression = " + blockCompression.name().toLowerCase(Locale.ROOT)
                    + ": an index=lmdb is not compressed: leave one of both out");
        }
        TableModes modes = modes(parameters, index);
        List<Path> directories = directories(directory, parameters.text("also", ""));
        parameters.refuseOthers();
        NativeLibrary.load();
        directories.forEach(AiodbProvider::makeParents);
        long store = Native.open(
                directories.stream().map(Path::toString).toArray(String[]::new),
                Durability.SYNC.ordinal(),
                intervalMillis,
                memoryBytes,
                memorySharedBy,
                cacheBytes,
                cacheWrites,
                blockCacheBytes,
                segmentBytes,
                maxOpenFiles,
                compression.name().toLowerCase(Locale.ROOT),
                index.name().toLowerCase(Locale.ROOT),
                inlineBytes,
                blockCompression.name().toLowerCase(Locale.ROOT));
        return new AiodbStore(store, intervalMillis, modes);
    }

    private static TableModes modes(Parameters parameters, Index index) {
        StorageMode keys = parameters.choice("keys", StorageMode.AUTO);
        StorageMode values = parameters.choice("values", StorageMode.AUTO);
        if (keys == StorageMode.DISK && values == StorageMode.MEMORY) {
            throw new StoreException.Configuration("keys = disk beside values = memory: a get would read the disk for the key"
                    + " before it knows of a value in memory: leave one of both out");
        }
        if (keys == StorageMode.DISK && index != Index.LSM) {
            throw new StoreException.Configuration("keys = disk: of an index=lmdb the system's page cache keeps what it has room"
                    + " for: leave one of both out");
        }
        return new TableModes(keys, values);
    }

    private static List<Path> directories(Path first, String also) {
        List<Path> directories = new ArrayList<>();
        directories.add(first.toAbsolutePath());
        for (String further : also.isEmpty() ? new String[0] : also.split(",")) {
            directories.add(Path.of(further.strip()).toAbsolutePath());
        }
        return directories;
    }

    private static void makeParents(Path directory) {
        try {
            Files.createDirectories(directory);
        } catch (IOException failure) {
            throw new StoreException.Configuration("cannot make the directory " + directory + ": " + failure, failure);
        }
    }
}
