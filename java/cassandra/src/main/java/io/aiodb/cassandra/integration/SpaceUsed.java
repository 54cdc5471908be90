package io.aiodb.cassandra.integration;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.metrics.StorageMetrics;

/**
 * The part of a memtable in the space that Cassandra says its table, and the node, take on disk: that would be SSTables
 * only.
 */
public final class SpaceUsed {
    private long reported;
    private boolean ended;

    /** Says how much it is now. */
    public synchronized void report(ColumnFamilyStore cfs, long bytes) {
        if (!ended) {
            add(cfs, bytes - reported);
            reported = bytes;
        }
    }

    /** Takes it all back, for good. */
    public synchronized void end(ColumnFamilyStore cfs) {
        report(cfs, 0);
        ended = true;
    }

    private static void add(ColumnFamilyStore cfs, long bytes) {
        cfs.metric.liveDiskSpaceUsed.inc(bytes);
        cfs.metric.totalDiskSpaceUsed.inc(bytes);
        StorageMetrics.load.inc(bytes);
    }
}
