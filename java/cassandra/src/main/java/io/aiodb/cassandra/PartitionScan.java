package io.aiodb.cassandra;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.EmptyIterators;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ClusteringIndexFilter;
import org.apache.cassandra.db.filter.ClusteringIndexNamesFilter;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.AbstractUnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.IncludingExcludingBounds;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.AbstractIterator;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;

/**
 * The partitions of a range, one after the other. Where whole partitions are wanted, they come out of one scan of the store;
 * otherwise the scan finds the partitions, and each is read by itself.
 */
final class PartitionScan extends AbstractUnfilteredPartitionIterator {
    /** When the rest of a partition that nobody wants is longer than this, the scan begins anew behind it. */
    private static final int MAX_SKIPPED = 100;

    /** A store that is out of space ends scans that are in its way: so often in a row another one is begun. */
    private static final int ATTEMPTS = 100;

    private final Generation generation;
    private final TableMetadata metadata;
    private final ColumnFilter columns;
    private final DataRange range;
    private final byte[] end;

    /** Null before the first partition, and at the end. */
    private Rows rows;

    /** Null before the first partition. */
    private Frames.Reader reader;

    /** Whether the scan is at an entry that was not used yet. */
    private boolean pending;

    /** Where another scan would begin. */
    private byte[] begin;

    private boolean ended;

    /** The partition that was given last, until the scan has left it. */
    private StoredKey.Partition current;

    /** Whether there can be no more of it. */
    private boolean exhausted;

    PartitionScan(Generation generation, TableMetadata metadata, ColumnFilter columns, DataRange range) {
        this.generation = generation;
        this.metadata = metadata;
        this.columns = columns;
        this.range = range;
        ByteComparable start = range.startAsByteComparable();
        ByteComparable stop = range.stopAsByteComparable();
        this.begin = start == null ? null : StoredKey.bound(start);
        this.end = stop == null ? null : StoredKey.bound(stop);
        this.ended = generation.tableOrNull() == null;
    }

    /**
     * All that lies between two positions.
     *
     * @param from the first, and {@code to} the one behind the last; null or the minimum where there is none
     */
    static PartitionScan of(
            Generation generation, TableMetadata metadata, PartitionPosition from, PartitionPosition to) {
        PartitionPosition least = metadata.partitioner.getMinimumToken().minKeyBound();
        var bounds = new IncludingExcludingBounds<>(from == null ? least : from, to == null ? least : to);
        ColumnFilter columns = ColumnFilter.selection(metadata.regularAndStaticColumns());
        ClusteringIndexFilter all = DataRange.allData(metadata.partitioner).clusteringIndexFilter(null);
        return new PartitionScan(generation, metadata, columns, new DataRange(bounds, all));
    }

    @Override
    public TableMetadata metadata() {
        return metadata;
    }

    @Override
    public boolean hasNext() {
        if (!ended && current != null) {
            leave();
        }
        if (!ended && !pending && !advance()) {
            close();
        }
        return !ended;
    }

    @Override
    public UnfilteredRowIterator next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        StoredKey.Partition partition = StoredKey.parse(rows.key(), metadata.partitioner);
        current = partition;
        exhausted = false;
        begin = partition.entry(StoredKey.END);
        DecoratedKey key = partition.key();
        ClusteringIndexFilter filter = range.clusteringIndexFilter(key);
        if (selectsAll(filter) && !filter.isReversed()) {
            return whole(partition);
        }
        Slices slices = filter.getSlices(metadata);
        UnfilteredRowIterator read =
                PartitionReader.read(generation, metadata, key, slices, columns, filter.isReversed());
        return read != null
                ? read
                : EmptyIterators.unfilteredRow(metadata, key, filter.isReversed());
    }

    /** What {@link ClusteringIndexFilter#selectsAllPartition} says also of a filter by names that selects no row. */
    private boolean selectsAll(ClusteringIndexFilter filter) {
        if (filter instanceof ClusteringIndexNamesFilter names) {
            return metadata.comparator.size() == 0 && !names.requestedRows().isEmpty();
        }
        return filter.selectsAllPartition();
    }

    /** The partition at which the scan is, out of this scan. */
    private UnfilteredRowIterator whole(StoredKey.Partition partition) {
        Head head = new Head();
        boolean inside = true;
        while (inside && partition.kind(rows.key()) != StoredKey.ROW) {
            head.add(partition.kind(rows.key()), rows.value(), generation, metadata);
            pending = false;
            inside = advance() && partition.has(rows.key());
        }
        Folder.Notes notes = generation.open().folder().notes(generation, metadata, partition.key());
        notes.head(head);
        return new StoredPartition(
                metadata,
                partition.key(),
                head,
                Slices.ALL,
                columns,
                false,
                generation.summary().encodingStats(),
                slice -> remaining(partition, notes),
                notes::fold);
    }

    private Iterator<Row> remaining(StoredKey.Partition partition, Folder.Notes notes) {
        return new AbstractIterator<>() {
            @Override
            protected Row computeNext() {
                while (current == partition && !ended && (pending || advance()) && partition.has(rows.key())) {
                    pending = false;
                    exhausted = metadata.comparator.size() == 0;
                    Row row = reader.row(rows.value());
                    if (Folder.isLong(reader.updates())) {
                        notes.row(rows.key());
                    }
                    if (row != null) {
                        return row;
                    }
                }
                return endOfData();
            }
        };
    }

    /** Leaves the partition that was given last. */
    private void leave() {
        StoredKey.Partition left = current;
        current = null;
        for (int skipped = 0; skipped < MAX_SKIPPED; skipped++) {
            if (!pending && !advance()) {
                return;
            }
            if (!left.has(rows.key())) {
                return;
            }
            pending = false;
        }
        closeRows();
    }

    /**
     * Goes to the next entry. Where the store has ended the scan, another goes on behind the last partition; within one it
     * must not, since each update of it is seen whole.
     */
    private boolean advance() {
        for (int attempt = 1; ; attempt++) {
            try {
                return advanceInStore();
            } catch (StoreException.SnapshotEnded outOfSpace) {
                if (current != null && !exhausted || attempt == ATTEMPTS) {
                    throw outOfSpace;
                }
                closeRows();
            } catch (StoreException failure) {
                throw DiskErrors.ofRead(failure, generation.open());
            }
        }
    }

    private boolean advanceInStore() {
        if (rows == null) {
            Range wanted = begin == null ? Range.all() : Range.all().from(begin);
            Range bounded = end == null ? wanted : wanted.before(end);
            rows = generation.open().stripes().open(() -> generation.tableOrNull().scan(bounded));
            reader = new Frames.Reader(false, generation.headers(), metadata);
        }
        pending = rows.next();
        return pending;
    }

    @Override
    public void close() {
        ended = true;
        closeRows();
    }

    private void closeRows() {
        if (rows != null) {
            rows.close();
            rows = null;
        }
    }
}
