package io.aiodb.store.rocksdb;

import io.aiodb.store.Parameters;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.StoreProvider;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.rocksdb.RocksDB;

/**
 * Opens RocksDB stores. Parameters:
 *
 * <ul>
 *   <li>{@code interval_millis}: how much a power cut may take of writes in class interval; 1 to 3600000, default 10000
 *   <li>{@code cache_bytes}: the block cache of all tables; default 67108864
 *   <li>{@code write_buffer_bytes}: a table's memtable; default 67108864
 * </ul>
 */
public final class RocksProvider implements StoreProvider {
    private static final long MAX_BYTES = 1L << 44;

    @Override
    public String name() {
        return RocksStore.NAME;
    }

    @Override
    public Store open(Path directory, Parameters parameters) {
        long intervalMillis = parameters.number("interval_millis", 10_000, 1, 3_600_000);
        long cacheBytes = parameters.number("cache_bytes", 64 << 20, 0, MAX_BYTES);
        long writeBufferBytes = parameters.number("write_buffer_bytes", 64 << 20, 64 << 10, MAX_BYTES);
        parameters.refuseOthers();
        try {
            RocksDB.loadLibrary();
        } catch (UnsatisfiedLinkError | RuntimeException failure) {
            throw new StoreException.NativeLibrary(
                    "cannot load RocksDB's native library on " + System.getProperty("os.name") + "-"
                            + System.getProperty("os.arch") + ": " + failure,
                    failure);
        }
        try {
            Files.createDirectories(directory);
        } catch (IOException failure) {
            throw new StoreException.Configuration("cannot make the directory " + directory + ": " + failure, failure);
        }
        return new RocksStore(directory, intervalMillis, new RocksFamilies.Settings(cacheBytes, writeBufferBytes));
    }
}
