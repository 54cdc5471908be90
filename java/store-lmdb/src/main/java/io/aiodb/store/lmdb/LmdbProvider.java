package io.aiodb.store.lmdb;

import io.aiodb.store.DirectoryLock;
import io.aiodb.store.Parameters;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.StoreProvider;
import java.nio.file.Path;
import org.lmdbjava.ByteArrayProxy;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;

/**
 * Opens LMDB stores. The virtual machine needs {@code --add-opens=java.base/java.nio=ALL-UNNAMED} and
 * {@code --add-opens=java.base/sun.nio.ch=ALL-UNNAMED}. Parameters:
 *
 * <ul>
 *   <li>{@code map_bytes}: the most that the store may ever hold; it takes address space, not disk. Default 68719476736
 *   <li>{@code max_tables}: default 256; each costs every transaction a little
 * </ul>
 */
public final class LmdbProvider implements StoreProvider {
    private static final long MAX_MAP_BYTES = 1L << 46;
    private static final int MAX_TABLES = 65_536;

    /** Read transactions at a time: snapshots, scans and gets. */
    private static final int MAX_READERS = 4096;

    @Override
    public String name() {
        return LmdbStore.NAME;
    }

    @Override
    public Store open(Path directory, Parameters parameters) {
        long mapBytes = parameters.number("map_bytes", 64L << 30, 1 << 20, MAX_MAP_BYTES);
        int maxTables = (int) parameters.number("max_tables", 256, 1, MAX_TABLES);
        parameters.refuseOthers();
        // LMDB does not notice that a process opens an environment twice, and loses its locks when it does.
        DirectoryLock lock = DirectoryLock.take(directory);
        try {
            // Read transactions belong to their snapshots and scans, not to threads.
            Env<byte[]> env = Env.create(ByteArrayProxy.PROXY_BA)
                    .setMapSize(mapBytes)
                    .setMaxDbs(maxTables)
                    .setMaxReaders(MAX_READERS)
                    .open(directory.toFile(), EnvFlags.MDB_NOTLS);
            return new LmdbStore(env, lock);
        } catch (LinkageError failure) {
            lock.close();
            throw new StoreException.NativeLibrary(
                    "cannot load LMDB's native library on " + System.getProperty("os.name") + "-"
                            + System.getProperty("os.arch") + ": " + failure,
                    failure);
        } catch (RuntimeException failure) {
            lock.close();
            throw LmdbStore.failed(failure);
        }
    }
}
