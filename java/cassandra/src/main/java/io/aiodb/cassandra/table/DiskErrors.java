package io.aiodb.cassandra.table;

import io.aiodb.store.StoreException;
import org.apache.cassandra.io.FSReadError;
import org.apache.cassandra.io.FSWriteError;
import org.apache.cassandra.io.sstable.CorruptSSTableException;

/**
 * Failures of the disk under a store, in the words of Cassandra: whoever catches them there does what {@code
 * disk_failure_policy} says. A full store is none: it goes on reading, and writing once there is space.
 */
public final class DiskErrors {
    private DiskErrors() {}

    /** What to throw for a failed read. */
    public static RuntimeException ofRead(StoreException failure, OpenStore open) {
        if (failure instanceof StoreException.Failed) {
            throw new FSReadError(failure, open.directory());
        }
        return corruptionOr(failure, open);
    }

    /** What to throw for a failed write. */
    public static RuntimeException ofWrite(StoreException failure, OpenStore open) {
        if (failure instanceof StoreException.Failed) {
            throw new FSWriteError(failure, open.directory());
        }
        return corruptionOr(failure, open);
    }

    private static RuntimeException corruptionOr(StoreException failure, OpenStore open) {
        return failure instanceof StoreException.Corruption
                ? new CorruptSSTableException(failure, open.directory().toString())
                : failure;
    }
}
