package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.DiskErrors;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Range;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Function;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.tracing.Tracing;

/**
 * Reads one partition. A reader sees each update of it whole or not at all: one get and one scan are so by themselves; where
 * several are needed, they are done again if a writer was at work meanwhile, and at last under a snapshot.
 */
public final class PartitionReader {
    /** More single rows than this are read from a snapshot, as they are asked for. */
    private static final int MAX_POINTS = 64;

    private static final int ATTEMPTS = 3;

    private final StoredTable storedTable;
    private final Table table;
    private final TableMetadata metadata;
    private final DecoratedKey partition;
    private final Slices slices;
    private final ColumnFilter columns;
    private final boolean reversed;
    private final StoredKey key;
    private final MergeQueue.Notes notes;

    private PartitionReader(
            StoredTable storedTable,
            TableMetadata metadata,
            DecoratedKey partition,
            Slices slices,
            ColumnFilter columns,
            boolean reversed) {
        this.storedTable = storedTable;
        this.table = storedTable.tableOrNull();
        this.metadata = metadata;
        this.partition = partition;
        this.slices = slices;
        this.columns = columns;
        this.reversed = reversed;
        this.key = new StoredKey().partition(partition);
        this.notes = storedTable.open().mergeQueue().notes(storedTable, metadata, partition);
    }

    /**
     * The slices of a partition; null if there is nothing of it. To be closed. Each update is in it whole or not at all.
     *
     * @throws RuntimeException one of {@link DiskErrors#ofRead} where the store fails, here or in the iterator
     */
    public static UnfilteredRowIterator read(
            StoredTable storedTable,
            TableMetadata metadata,
            DecoratedKey partition,
            Slices slices,
            ColumnFilter columns,
            boolean reversed) {
        if (storedTable.tableOrNull() == null) {
            return null;
        }
        try {
            return new PartitionReader(storedTable, metadata, partition, slices, columns, reversed).read();
        } catch (StoreException failure) {
            throw DiskErrors.ofRead(failure, storedTable.open());
        }
    }

    /**
     * Whether there is anything of a partition, or may be soon: the rest of an update that is there in part comes later, and
     * deletions elsewhere that hide it must stay until then.
     */
    public static boolean exists(StoredTable storedTable, DecoratedKey partition) {
        Table table = storedTable.tableOrNull();
        if (table == null) {
            return false;
        }
        if (storedTable.unfinished().isIn(PartitionLocks.of(partition))) {
            return true;
        }
        StoredKey key = new StoredKey().partition(partition);
        byte[] from = key.entry(StoredKey.DELETION).copy();
        byte[] to = key.entry(StoredKey.END).copy();
        try (var rows = new RenewedRows(table, Range.all().from(from).before(to).limit(1).keysOnly())) {
            return rows.next();
        }
    }

    private UnfilteredRowIterator read() {
        Tracing.trace(
                "Reading {} slices of a partition in the {} store",
                slices.size(),
                table.store().capabilities().name());
        boolean headerNeeded = PartitionHeader.isNeeded(storedTable.stats(), columns);
        boolean points = slices.size() <= MAX_POINTS && allPoints();
        // The header of a partition is of up to three kinds of entries.
        boolean one = slices.size() <= 1 && !headerNeeded;
        if (points) {
            return one ? readOne(this::readPoints) : readConsistently(this::readPoints);
        }
        if (slices.size() == 1) {
            return one
                    ? readOne(source -> locks().open(() -> readSlice(source)))
                    : readConsistently(this::readSlice);
        }
        return locks().open(() -> readSlices(EntrySource.snapshot(table)));
    }

    /** Reads by one get or one scan, unless meanwhile the first update came that needs more than one. */
    private UnfilteredRowIterator readOne(Function<EntrySource, UnfilteredRowIterator> read) {
        UnfilteredRowIterator result = read.apply(EntrySource.latest(table));
        if (!PartitionHeader.isNeeded(storedTable.stats(), columns)) {
            return result;
        }
        if (result != null) {
            result.close();
        }
        return readConsistently(read);
    }

    private UnfilteredRowIterator readConsistently(Function<EntrySource, UnfilteredRowIterator> read) {
        PartitionLocks locks = locks();
        int stripe = PartitionLocks.of(partition);
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            long began = locks.readBegins(stripe);
            if (began == PartitionLocks.BUSY) {
                continue;
            }
            UnfilteredRowIterator result = read.apply(EntrySource.latest(table));
            if (locks.isUnchanged(stripe, began)) {
                return result;
            }
            if (result != null) {
                result.close();
            }
        }
        return locks.open(() -> read.apply(EntrySource.snapshot(table)));
    }

    /** Whether each slice is one row. */
    private boolean allPoints() {
        for (Slice slice : slices) {
            if (!isPoint(slice)) {
                return false;
            }
        }
        return true;
    }

    private boolean isPoint(Slice slice) {
        int size = metadata.comparator.size();
        ClusteringBound<?> start = slice.start();
        ClusteringBound<?> end = slice.end();
        if (start.size() != size || end.size() != size || !start.isInclusive() || !end.isInclusive()) {
            return false;
        }
        for (int i = 0; i < size; i++) {
            if (start.get(i) == null || end.get(i) == null || !start.bufferAt(i).equals(end.bufferAt(i))) {
                return false;
            }
        }
        return true;
    }

    private static <V> Clustering<V> clustering(ClusteringPrefix<V> point) {
        return point.accessor().factory().clustering(point.getRawValues());
    }

    private PartitionLocks locks() {
        return storedTable.open().locks();
    }

    private PartitionHeader header(EntrySource source) {
        PartitionHeader header = PartitionHeader.read(source, key, storedTable, metadata, columns);
        if (header.isLong()) {
            notes.header();
        }
        return header;
    }

    /** Single rows, all of them now. Closes the source. */
    private UnfilteredRowIterator readPoints(EntrySource source) {
        Map<Slice, Row> rows = new HashMap<>();
        PartitionHeader header;
        try (source) {
            header = header(source);
            for (Slice slice : slices) {
                byte[] place = key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(clustering(slice.start())))
                        .copy();
                byte[] found = source.get(place);
                Row row = found == null ? null : row(place, found);
                if (row != null) {
                    rows.put(slice, row);
                }
            }
        }
        notes.submit();
        if (rows.isEmpty() && header.isEmpty()) {
            return null;
        }
        return result(
                header,
                slice -> {
                    Row row = rows.get(slice);
                    return row == null ? Collections.emptyIterator() : Collections.singleton(row).iterator();
                },
                () -> {});
    }

    private Row row(byte[] place, byte[] found) {
        FrameReader reader = new FrameReader(false, storedTable.headers(), metadata);
        Row row = reader.row(ByteBuffer.wrap(found));
        if (MergeQueue.isLong(reader.updates())) {
            notes.row(ByteBuffer.wrap(place));
        }
        return row;
    }

    /** The only slice. The source is closed with the result, or now if there is none. */
    private UnfilteredRowIterator readSlice(EntrySource source) {
        OpenSlice open = new OpenSlice(source);
        UnfilteredRowIterator read = null;
        try {
            PartitionHeader header = header(source);
            StoredRows rows = open.rows(slices.get(0));
            if (rows.hasNext() || !header.isEmpty()) {
                read = result(header, slice -> rows, open);
            }
            return read;
        } finally {
            if (read == null) {
                open.close();
            }
        }
    }

    /** Several slices, each when it is asked for. The source is closed with the result. */
    private UnfilteredRowIterator readSlices(EntrySource source) {
        OpenSlice open = new OpenSlice(source);
        UnfilteredRowIterator read = null;
        try {
            read = result(header(source), open::rows, open);
            return read;
        } finally {
            if (read == null) {
                open.close();
            }
        }
    }

    /** A source, and the slice of it that is read at the moment: a reader may stop before its last row. */
    private final class OpenSlice implements AutoCloseable {
        private final EntrySource source;

        /** Null before the first slice. */
        private StoredRows rows;

        OpenSlice(EntrySource source) {
            this.source = source;
        }

        /** The rows of a slice, in the place of those of the slice before. */
        StoredRows rows(Slice slice) {
            try {
                closeRows();
                Range range = Range.all().from(bound(slice.start())).before(bound(slice.end()));
                FrameReader reader = new FrameReader(false, storedTable.headers(), metadata);
                rows = new StoredRows(source.scan(reversed ? range.backward() : range), reader, storedTable.open(), notes);
                return rows;
            } catch (StoreException failure) {
                throw DiskErrors.ofRead(failure, storedTable.open());
            }
        }

        private void closeRows() {
            if (rows != null) {
                rows.close();
            }
        }

        @Override
        public void close() {
            try (source) {
                closeRows();
            }
        }
    }

    /** Bounds lie between the rows; the greatest has the place where the next kind of entries would begin. */
    private byte[] bound(ClusteringBound<?> bound) {
        if (bound.isBottom()) {
            return key.entry(StoredKey.ROW).copy();
        }
        if (bound.isTop()) {
            return key.entry(StoredKey.END).copy();
        }
        return key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(bound)).copy();
    }

    private UnfilteredRowIterator result(
            PartitionHeader header, Function<Slice, ? extends Iterator<Row>> rows, AutoCloseable resource) {
        return new StoredPartition(
                metadata,
                partition,
                header,
                slices,
                columns,
                reversed,
                storedTable.stats().encodingStats(),
                rows,
                resource);
    }
}
