package io.aiodb.cassandra.write;

import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;

/**
 * Partitions as updates of few rows and few bytes, to be written one after the other: a partition may have more than memory
 * or a store takes at once. Only a row that is larger by itself makes a larger update.
 */
public final class BoundedUpdates implements Iterator<PartitionUpdate>, AutoCloseable {
    /** Rows and range tombstones of an update. */
    static final int MAX_ENTRIES = 500;

    /** From here on an update takes no more. With one usual row beyond it stores still write it at once. */
    static final int MAX_BYTES = BulkWriter.MAX_BATCH_BYTES / 2;

    /** Rows for which an update has room when it begins. Most partitions have fewer. */
    private static final int FIRST_ROWS = 16;

    private final UnfilteredPartitionIterator partitions;

    /** Null before the first partition, and when the rest of one was given. */
    private UnfilteredRowIterator partition;

    /** Where the range tombstone begins that is open; null if none is. It is given as a whole when it closes. */
    private ClusteringBound<?> openBound;

    private DeletionTime openDeletion;

    /** @param partitions in the order of their clusterings; closed with this */
    public BoundedUpdates(UnfilteredPartitionIterator partitions) {
        this.partitions = partitions;
    }

    @Override
    public boolean hasNext() {
        return partition != null || partitions.hasNext();
    }

    @Override
    public PartitionUpdate next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        boolean isFirst = partition == null;
        if (isFirst) {
            partition = partitions.next();
        }
        PartitionUpdate.Builder update = new PartitionUpdate.Builder(
                partition.metadata(), partition.partitionKey(), partition.columns(), FIRST_ROWS, false);
        int bytes = 0;
        if (isFirst) {
            update.addPartitionDeletion(partition.partitionLevelDeletion());
            update.add(partition.staticRow());
            bytes += partition.staticRow().dataSize();
        }
        for (int entries = 0; entries < MAX_ENTRIES && bytes < MAX_BYTES && partition.hasNext(); entries++) {
            bytes += add(partition.next(), update);
        }
        if (!partition.hasNext()) {
            closePartition();
        }
        return update.build();
    }

    /** Returns how many bytes it has added. */
    private int add(Unfiltered entry, PartitionUpdate.Builder update) {
        if (entry instanceof Row row) {
            update.add(row);
            return row.dataSize();
        }
        RangeTombstoneMarker marker = (RangeTombstoneMarker) entry;
        int bytes = 0;
        if (marker.isClose(false)) {
            ClusteringBound<?> closeBound = marker.closeBound(false);
            update.add(new RangeTombstone(Slice.make(openBound, closeBound), openDeletion));
            bytes = openBound.dataSize() + closeBound.dataSize();
            openBound = null;
        }
        if (marker.isOpen(false)) {
            openBound = marker.openBound(false);
            openDeletion = marker.openDeletionTime(false);
        }
        return bytes;
    }

    private void closePartition() {
        partition.close();
        partition = null;
    }

    @Override
    public void close() {
        try (partitions) {
            if (partition != null) {
                closePartition();
            }
        }
    }
}
