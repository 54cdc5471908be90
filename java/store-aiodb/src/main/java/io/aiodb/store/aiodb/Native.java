package io.aiodb.store.aiodb;

import io.aiodb.store.StorageMode;
import java.nio.ByteBuffer;
import java.util.Locale;

/**
 * The native methods, see {@code crates/aiodb-jni/src/lib.rs}. Stores, tables, snapshots and scans are numbers that are
 * never used again; one that was closed is {@link io.aiodb.store.StoreException.Closed}. All buffers must be direct.
 */
final class Native {
    /** No snapshot: what is there now. */
    static final long LATEST = 0;

    /** No bytes of memory: the engine decides. */
    static final long ENGINE_DECIDES = -1;

    static final int FROM = 1;
    static final int FROM_EXCLUDED = 2;
    static final int TO = 4;
    static final int TO_INCLUDED = 8;
    static final int BACKWARD = 16;
    static final int KEYS_ONLY = 32;

    private Native() {}

    /** A storage mode as the engine names it. */
    static String name(StorageMode mode) {
        return mode.name().toLowerCase(Locale.ROOT);
    }

    /** The storage mode that the engine names so. */
    static StorageMode mode(String name) {
        return StorageMode.valueOf(name.toUpperCase(Locale.ROOT));
    }

    static native int interfaceVersion();

    static native long open(
            String[] paths,
            int durability,
            long intervalMillis,
            long memoryBytes,
            int memorySharedBy,
            long cacheBytes,
            boolean cacheWrites,
            long blockCacheBytes,
            long segmentBytes,
            long maxOpenFiles,
            String compression,
            String index,
            int inlineBytes,
            String blockCompression);

    static native void close(long store);

    static native long table(long store, String name);

    static native long createTable(long store, String name, boolean frames, String keys, String values);

    static native void setTableModes(long store, long table, String keys, String values);

    static native void setMemoryBytes(long store, long bytes);

    static native String tableNames(long store);

    static native void truncateTable(long store, long table);

    static native void dropTable(long store, long table);

    static native void write(
            long store, ByteBuffer operations, int length, long[] tables, int durability, long intervalMillis);

    static native int get(
            long store, long table, long snapshot, ByteBuffer key, int keyLength, ByteBuffer value, int start, int room);

    static native byte[] getArray(long store, long table, long snapshot, ByteBuffer key, int keyLength);

    static native long snapshot(long store);

    static native void closeSnapshot(long store, long snapshot);

    static native long scan(
            long store,
            long table,
            long snapshot,
            ByteBuffer bounds,
            int fromLength,
            int toLength,
            int flags,
            long limit);

    static native long next(long store, long scan, ByteBuffer rows);

    static native void closeScan(long store, long scan);

    static native void sync(long store);

    static native String statistics(long store);

    static native String tableStatistics(long store, long table);

    static native long estimatedRows(long store, long table);
}
