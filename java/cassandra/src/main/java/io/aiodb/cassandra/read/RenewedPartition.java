package io.aiodb.cassandra.read;

import io.aiodb.store.StoreException;
import java.util.Iterator;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.RangeTombstoneBoundMarker;
import org.apache.cassandra.db.rows.RangeTombstoneBoundaryMarker;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.RowAndDeletionMergeIterator;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.AbstractIterator;

/**
 * A whole partition for a caller that takes long and must have it all: streams, repairs, snapshots, changes of the memtable.
 * A store ends a scan for which it would have to keep too much; here another one goes on behind the last row. So rows up to
 * some position are as they were at one moment, and those behind it as they were later, under the deletions of both moments:
 * a deletion that came meanwhile, also one of the whole partition, holds for the rest. No row that was there when the
 * partition began is missing unless its deletion is there, or was purged, and none comes back.
 */
final class RenewedPartition extends AbstractUnfilteredRowIterator {
    /** The stored rows of the partition, in their order. */
    interface Stored extends AutoCloseable {
        /**
         * The next row; null at the end.
         *
         * @throws StoreException.SnapshotEnded if it must be {@link #renew renewed} first
         */
        Row next();

        /** Goes on behind the row that was given last, as the store is now. Returns the header of the same moment. */
        PartitionHeader renew();

        @Override
        void close();
    }

    /** Of all moments together. */
    private final PartitionHeader header;

    private final ColumnFilter columns;
    private final Stored stored;

    /** The rows and markers to come; null where the partition must be renewed first. */
    private Iterator<Unfiltered> merged;

    /** Whether the next of them fits to the one that was given last, so that it need not be joined to it. */
    private boolean joined = true;

    /** A row or marker that is given before them; null if none is. */
    private Unfiltered held;

    /** The row that was taken last; null before the first. */
    private Clustering<?> last;

    /** The row behind which the last renewal goes on; null before the first one. */
    private Clustering<?> cut;

    /** Of the range tombstone that was begun and not ended; null if there is none. */
    private DeletionTime open;

    /** Since the last row. */
    private int renewals;

    private boolean closed;

    /** @param stored before its first row, for which it must not end: a renewal goes on behind a row */
    RenewedPartition(
            TableMetadata metadata,
            DecoratedKey key,
            PartitionHeader header,
            ColumnFilter columns,
            EncodingStats stats,
            Stored stored) {
        super(
                metadata,
                key,
                header.partitionDeletion(),
                columns.fetchedColumns(),
                header.staticRow(columns, metadata),
                false,
                stats);
        this.header = header;
        this.columns = columns;
        this.stored = stored;
        this.merged = merge(Slice.ALL);
    }

    @Override
    protected Unfiltered computeNext() {
        while (!closed) {
            try {
                if (merged == null) {
                    renew();
                }
                Unfiltered found = joined ? following() : join();
                if (found == null) {
                    close();
                    break;
                }
                if (found instanceof RangeTombstoneMarker marker) {
                    open = marker.isOpen(false) ? marker.openDeletionTime(false) : null;
                }
                return found;
            } catch (StoreException.SnapshotEnded ended) {
                renewals++;
                if (renewals >= RenewedRows.MAX_SCANS_WITHOUT_PROGRESS) {
                    throw ended;
                }
                merged = null;
            }
        }
        return endOfData();
    }

    private void renew() {
        header.addLater(stored.renew(), metadata);
        // Where nothing was given since the last renewal, no range was ended either: rows were taken that a deletion hides.
        cut = joined ? last : cut;
        joined = false;
        merged = merge(Slice.make(ClusteringBound.exclusiveStartOf(cut), ClusteringBound.TOP));
    }

    private Unfiltered following() {
        Unfiltered found = held;
        held = null;
        return found != null ? found : fetched();
    }

    /** Null at the end. */
    private Unfiltered fetched() {
        return merged.hasNext() ? merged.next() : null;
    }

    /** The first that is given after a renewal. A range tombstone that goes on there goes on, or is ended. */
    private Unfiltered join() {
        // As long as this fails, nothing has changed, and another renewal joins the same ends.
        Unfiltered first = fetched();
        joined = true;
        if (open == null) {
            return first;
        }
        ClusteringBound<?> end = ClusteringBound.inclusiveEndOf(cut);
        if (first instanceof RangeTombstoneBoundMarker begun && beginsAtCut(begun)) {
            // Behind it comes a row that was fetched before it, so this one is not given up.
            return begun.openDeletionTime(false).equals(open)
                    ? following()
                    : RangeTombstoneBoundaryMarker.makeBoundary(
                            false, end, begun.clustering(), open, begun.openDeletionTime(false));
        }
        held = first;
        return new RangeTombstoneBoundMarker(end, open);
    }

    private boolean beginsAtCut(RangeTombstoneBoundMarker marker) {
        return marker.isOpen(false)
                && metadata.comparator.compare(marker.clustering(), ClusteringBound.exclusiveStartOf(cut)) == 0;
    }

    private Iterator<Unfiltered> merge(Slice rest) {
        Iterator<Row> rows = new AbstractIterator<>() {
            @Override
            protected Row computeNext() {
                Row row = stored.next();
                if (row == null) {
                    return endOfData();
                }
                last = row.clustering();
                renewals = 0;
                return row;
            }
        };
        return new RowAndDeletionMergeIterator(
                metadata,
                partitionKey,
                header.partitionDeletion(),
                columns,
                Rows.EMPTY_STATIC_ROW,
                false,
                stats(),
                rows,
                header.deletions().rangeIterator(rest, false),
                true);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            stored.close();
        }
    }
}
