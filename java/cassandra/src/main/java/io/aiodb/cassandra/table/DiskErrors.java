package io.aiodb.cassandra.table;

import io.aiodb.store.StoreException;
import org.apache.cassandra.io.FSReadError;
import org.apache.cassandra.io.FSWriteError;
import org.apache.cassandra.io.sstable.CorruptSSTableException;

/**
 * Failures of the disk under a store as errors of Cassandra's, which does as {@code disk_failure_policy} says where it
 * catches them ({@code JVMStabilityInspector}). A full store is none: it goes on reading, and writing once there is space.
 * Neither is a store on a server whose disk fails, or that is down: requests fail until it is back, as its
 * {@link ServerOutage} tells the operator, and the node's own disks are well.
 */
public final class DiskErrors {
    private DiskErrors() {}

    /** The error of a failed read. The store counts it if others would fail as well. */
    public static RuntimeException ofRead(StoreException failure, OpenStore open) {
        if (failure instanceof StoreException.Failed || failure instanceof StoreException.Unavailable) {
            open.readFailed();
        }
        if (failure instanceof StoreException.Unavailable away) {
            return open.outage().refusedRead(away);
        }
        if (failure instanceof StoreException.Failed && !open.configuration().isOnServer()) {
            throw new FSReadError(failure, open.directory());
        }
        return corruptionOr(failure, open);
    }

    /** The error of a failed write. */
    public static RuntimeException ofWrite(StoreException failure, OpenStore open) {
        if (failure instanceof StoreException.Unavailable away) {
            return open.outage().refusedWrite(away);
        }
        if (failure instanceof StoreException.Failed && !open.configuration().isOnServer()) {
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
