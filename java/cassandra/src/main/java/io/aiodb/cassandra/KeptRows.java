package io.aiodb.cassandra;

import com.google.common.util.concurrent.Futures;
import io.aiodb.store.StoreException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.utils.FBUtilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The automatic snapshots of what is truncated. A truncate only says in the catalog that the rows are to be kept, which takes
 * the same time for any number of them; then they are written to SSTables in the background, and leave the store. A node that
 * ends meanwhile begins anew when it starts.
 */
final class KeptRows {
    private static final Logger LOGGER = LoggerFactory.getLogger(KeptRows.class);
    private static final int IDLE_SECONDS = 10;

    /** One after the other. The queue is as long as there are generations to be kept. */
    private static final ThreadPoolExecutor THREAD = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            new NamedThreadFactory("aiodb-snapshots"));

    static {
        THREAD.allowCoreThreadTimeOut(true);
    }

    private KeptRows() {}

    /** What the snapshot of a table is to be called, as Cassandra calls its own. */
    static String snapshotName(ColumnFamilyStore cfs) {
        return Keyspace.getTimestampedSnapshotNameWithPrefix(
                cfs.getTableName(), ColumnFamilyStore.SNAPSHOT_TRUNCATE_PREFIX);
    }

    /** Writes a generation that is marked as kept to its snapshot, and removes it, when those before are done. */
    static void write(ColumnFamilyStore cfs, Generation generation) {
        THREAD.execute(() -> {
            try {
                writeNow(cfs, generation);
            } catch (StoreException.Closed over) {
                LOGGER.info("The snapshot of {} is written when the node starts again", cfs.metadata());
            } catch (Throwable failure) {
                LOGGER.error(
                        "The snapshot of what was truncated of {} is not written; it is tried again when the node starts",
                        cfs.metadata(),
                        failure);
            }
        });
    }

    private static void writeNow(ColumnFamilyStore cfs, Generation generation) {
        if (!cfs.isValid()) {
            // The table was dropped while somebody still read what had been truncated.
            generation.remove();
            return;
        }
        String name = generation.open().catalog().snapshotName(generation.id(), generation.number());
        long began = System.nanoTime();
        // Of an attempt before, which may have ended anywhere.
        cfs.clearSnapshot(name);
        cfs.snapshotWithoutMemtable(
                name, sstable -> false, false, DatabaseDescriptor.getAutoSnapshotTtl(), null, FBUtilities.now());
        FlushSet rows = new FlushSet(
                cfs.getTracker().getView().getCurrentMemtable(),
                generation,
                null,
                null,
                CommitLogPosition.NONE,
                CommitLogPosition.NONE);
        SnapshotWriter.write(cfs, rows, name);
        generation.remove();
        LOGGER.info(
                "Wrote what was truncated of {} to the snapshot {} in {} ms",
                cfs.metadata(),
                name,
                (System.nanoTime() - began) / 1_000_000);
    }

    /** Waits until what was truncated until now is written: the table will not be there any more. */
    static void await() {
        Futures.getUnchecked(THREAD.submit(() -> {}));
    }
}
