package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.DiskErrors;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
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
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.IncludingExcludingBounds;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.AbstractIterator;
import org.apache.cassandra.utils.bytecomparable.ByteComparable;

/**
 * The partitions of a range, one after the other. Where whole partitions are wanted, they come out of one scan of the store;
 * otherwise the scan finds the partitions, and each is read by itself. A store ends a scan for which it would have to keep
 * too much, since rows are overwritten meanwhile or the disk is full; then another one goes on.
 */
public final class PartitionScan extends AbstractUnfilteredPartitionIterator {
    /** When the rest of a partition that nobody wants is longer than this, the scan begins anew behind it. */
    private static final int MAX_SKIPPED = 100;

    private final StoredTable storedTable;
    private final TableMetadata metadata;
    private final ColumnFilter columns;
    private final DataRange range;
    private final byte[] end;

    /**
     * Whether another scan may go on within a partition, see {@link RenewedPartition}; a query sees each update of it whole.
     */
    private final boolean renews;

    /** The snapshot that the scan belongs to; null if it stands alone. */
    private EntrySource source;

    /** Null before the first partition, and at the end. */
    private Rows rows;

    /** Null before the first partition. */
    private FrameReader reader;

    /** Whether the scan is at an entry that was not used yet. */
    private boolean pending;

    /** Where another scan would begin. */
    private byte[] begin;

    private boolean ended;

    /** The partition that was given last, until the scan has left it. */
    private StoredKey.Partition current;

    /** Whether there can be no more of it. */
    private boolean exhausted;

    /** The row that was read last. */
    private final LastKey last = new LastKey();

    /** All of a range, for a caller that takes long. */
    public PartitionScan(StoredTable storedTable, TableMetadata metadata, ColumnFilter columns, DataRange range) {
        this(storedTable, metadata, columns, range, true);
    }

    private PartitionScan(
            StoredTable storedTable, TableMetadata metadata, ColumnFilter columns, DataRange range, boolean renews) {
        this.storedTable = storedTable;
        this.metadata = metadata;
        this.columns = columns;
        this.range = range;
        this.renews = renews;
        ByteComparable start = range.startAsByteComparable();
        ByteComparable stop = range.stopAsByteComparable();
        this.begin = start == null ? null : StoredKey.bound(start);
        this.end = stop == null ? null : StoredKey.bound(stop);
        this.ended = storedTable.tableOrNull() == null;
    }

    /** For a query: of each partition it sees every update whole or not at all, and fails where the store ends that. */
    public static PartitionScan ofQuery(
            StoredTable storedTable, TableMetadata metadata, ColumnFilter columns, DataRange range) {
        return new PartitionScan(storedTable, metadata, columns, range, false);
    }

    /**
     * All that lies between two positions, for a caller that takes long.
     *
     * @param from the first, and {@code to} the one behind the last; null or the minimum where there is none
     */
    public static PartitionScan of(
            StoredTable storedTable, TableMetadata metadata, PartitionPosition from, PartitionPosition to) {
        PartitionPosition least = metadata.partitioner.getMinimumToken().minKeyBound();
        var bounds = new IncludingExcludingBounds<>(from == null ? least : from, to == null ? least : to);
        ColumnFilter columns = ColumnFilter.selection(metadata.regularAndStaticColumns());
        ClusteringIndexFilter all = DataRange.allData(metadata.partitioner).clusteringIndexFilter(null);
        return new PartitionScan(storedTable, metadata, columns, new DataRange(bounds, all));
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
                PartitionReader.read(storedTable, metadata, key, slices, columns, filter.isReversed());
        return read != null
                ? read
                : EmptyIterators.unfilteredRow(metadata, key, filter.isReversed());
    }

    /**
     * Unlike {@link ClusteringIndexFilter#selectsAllPartition}, which is also true for a filter by names that selects no
     * row.
     */
    private boolean selectsAll(ClusteringIndexFilter filter) {
        if (filter instanceof ClusteringIndexNamesFilter names) {
            return metadata.comparator.size() == 0 && !names.requestedRows().isEmpty();
        }
        return filter.selectsAllPartition();
    }

    /** The partition at which the scan is, out of this scan. Until its first row is read, another scan can begin it anew. */
    private UnfilteredRowIterator whole(StoredKey.Partition partition) {
        for (int scans = 1; ; scans++) {
            try {
                return begun(partition);
            } catch (StoreException.SnapshotEnded ended) {
                if (scans == RenewedRows.MAX_SCANS_WITHOUT_PROGRESS) {
                    throw ended;
                }
            }
        }
    }

    private UnfilteredRowIterator begun(StoredKey.Partition partition) {
        if (rows == null) {
            begin = partition.entry(StoredKey.DELETION);
            advance();
            begin = partition.entry(StoredKey.END);
        }
        PartitionHeader header = new PartitionHeader();
        while (pending && partition.has(rows.key()) && partition.kind(rows.key()) != StoredKey.ROW) {
            header.add(partition.kind(rows.key()), rows.value(), storedTable, metadata);
            pending = false;
            advance();
        }
        MergeQueue.Notes notes = storedTable.open().mergeQueue().notes(storedTable, metadata, partition.key());
        if (header.isLong()) {
            notes.header();
        }
        Rest rest = new Rest(partition, notes);
        rest.first = rest.read();
        EncodingStats stats = storedTable.stats().encodingStats();
        if (renews) {
            return new RenewedPartition(metadata, partition.key(), header, columns, stats, rest);
        }
        return new StoredPartition(
                metadata, partition.key(), header, Slices.ALL, columns, false, stats, slice -> rest.iterator(), rest);
    }

    /** The rows of a partition that are left of this scan. */
    private final class Rest implements RenewedPartition.Stored {
        private final StoredKey.Partition partition;
        private final MergeQueue.Notes notes;

        /** Null if it was given, or there is none. */
        private Row first;

        private boolean over;

        Rest(StoredKey.Partition partition, MergeQueue.Notes notes) {
            this.partition = partition;
            this.notes = notes;
        }

        @Override
        public Row next() {
            Row row = first;
            first = null;
            return row != null ? row : read();
        }

        private Row read() {
            while (!over && current == partition && !ended && (pending || advance()) && partition.has(rows.key())) {
                pending = false;
                exhausted = metadata.comparator.size() == 0;
                if (renews) {
                    last.set(rows.key());
                }
                Row row = reader.row(rows.value());
                if (MergeQueue.isLong(reader.updates())) {
                    notes.row(rows.key());
                }
                if (row != null) {
                    return row;
                }
            }
            over = true;
            return null;
        }

        /** The header and the rows are of one moment: a purge that came between would take deletions that hide rows. */
        @Override
        public PartitionHeader renew() {
            try {
                closeRows();
                source = storedTable.open().locks().open(() -> EntrySource.snapshot(storedTable.tableOrNull()));
                StoredKey key = new StoredKey().partition(partition.key());
                PartitionHeader header = PartitionHeader.read(source, key, storedTable, metadata, columns);
                rows = source.scan(bounded(Range.all().after(last.copy())));
                reader = new FrameReader(false, storedTable.headers(), metadata);
                return header;
            } catch (StoreException.SnapshotEnded ended) {
                closeRows();
                throw ended;
            } catch (StoreException failure) {
                throw DiskErrors.ofRead(failure, storedTable.open());
            }
        }

        Iterator<Row> iterator() {
            return new AbstractIterator<>() {
                @Override
                protected Row computeNext() {
                    Row row = Rest.this.next();
                    return row == null ? endOfData() : row;
                }
            };
        }

        @Override
        public void close() {
            notes.submit();
        }
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
     * Goes to the next entry. Where the store has ended the scan, another goes on behind the last partition; within one, its
     * reader decides.
     */
    private boolean advance() {
        for (int scans = 1; ; scans++) {
            try {
                if (rows == null) {
                    Range wanted = bounded(begin == null ? Range.all() : Range.all().from(begin));
                    rows = storedTable.open().locks().open(() -> storedTable.tableOrNull().scan(wanted));
                    reader = new FrameReader(false, storedTable.headers(), metadata);
                }
                pending = rows.next();
                return pending;
            } catch (StoreException.SnapshotEnded ended) {
                closeRows();
                if (current != null && !exhausted || scans == RenewedRows.MAX_SCANS_WITHOUT_PROGRESS) {
                    throw ended;
                }
            } catch (StoreException failure) {
                throw DiskErrors.ofRead(failure, storedTable.open());
            }
        }
    }

    private Range bounded(Range wanted) {
        return end == null ? wanted : wanted.before(end);
    }

    @Override
    public void close() {
        ended = true;
        closeRows();
    }

    private void closeRows() {
        pending = false;
        try {
            if (rows != null) {
                rows.close();
            }
        } finally {
            rows = null;
            if (source != null) {
                source.close();
                source = null;
            }
        }
    }
}
