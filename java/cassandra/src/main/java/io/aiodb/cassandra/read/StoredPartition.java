package io.aiodb.cassandra.read;

import java.util.Iterator;
import java.util.function.Function;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.RowAndDeletionMergeIterator;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.schema.TableMetadata;

/** Slices of a partition in their order: its rows, which are fetched as they are asked for, between its deletions. */
final class StoredPartition extends AbstractUnfilteredRowIterator {
    private final PartitionHeader header;
    private final Slices slices;
    private final ColumnFilter columns;
    private final Function<Slice, ? extends Iterator<Row>> rows;
    private final AutoCloseable resource;

    private int next;
    private Iterator<Unfiltered> slice;
    private boolean closed;

    /**
     * @param rows gives the rows of a slice, in the order of the iteration; asked for the next slice at the end of the one before
     * @param resource is closed at the end, or before it by {@link #close}; what the rows hold is part of it
     */
    StoredPartition(
            TableMetadata metadata,
            DecoratedKey key,
            PartitionHeader header,
            Slices slices,
            ColumnFilter columns,
            boolean reversed,
            EncodingStats stats,
            Function<Slice, ? extends Iterator<Row>> rows,
            AutoCloseable resource) {
        super(
                metadata,
                key,
                header.partitionDeletion(),
                columns.fetchedColumns(),
                header.staticRow(columns, metadata),
                reversed,
                stats);
        this.header = header;
        this.slices = slices;
        this.columns = columns;
        this.rows = rows;
        this.resource = resource;
    }

    @Override
    protected Unfiltered computeNext() {
        while (!closed) {
            if (slice != null && slice.hasNext()) {
                return slice.next();
            }
            if (next == slices.size()) {
                close();
                break;
            }
            slice = merge(slices.get(isReverseOrder ? slices.size() - 1 - next : next));
            next++;
        }
        return endOfData();
    }

    private Iterator<Unfiltered> merge(Slice of) {
        Iterator<RangeTombstone> deletions = header.deletions().rangeIterator(of, isReverseOrder);
        return new RowAndDeletionMergeIterator(
                metadata,
                partitionKey,
                header.partitionDeletion(),
                columns,
                Rows.EMPTY_STATIC_ROW,
                isReverseOrder,
                stats(),
                rows.apply(of),
                deletions,
                true);
    }

    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        try {
            resource.close();
        } catch (RuntimeException failure) {
            throw failure;
        } catch (Exception impossible) {
            throw new AssertionError(impossible);
        }
    }
}
