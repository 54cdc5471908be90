package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.format.StoredTableStats;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

/** The part of a partition that every slice needs beside its rows: the deletions, and the static row as it is stored. */
public final class PartitionHeader {
    private MutableDeletionInfo deletions = MutableDeletionInfo.live();
    private Row staticRow = org.apache.cassandra.db.rows.Rows.EMPTY_STATIC_ROW;

    /** By kind of entry: how many updates the entries that were taken in are made of. */
    private final int[] updates = new int[StoredKey.ROW];

    private int entries;

    /** Whether a read of these columns needs anything but rows. */
    static boolean isNeeded(StoredTableStats stats, ColumnFilter columns) {
        return stats.mayHaveDeletions()
                || stats.mayHaveRangeTombstones()
                || stats.mayHaveStatics() && !columns.fetchedColumns().statics.isEmpty();
    }

    /** All of a partition's, as it is now. */
    public static PartitionHeader latest(StoredTable storedTable, TableMetadata metadata, DecoratedKey partition) {
        StoredKey key = new StoredKey().partition(partition);
        EntrySource source = EntrySource.latest(storedTable.table());
        return read(source, key, storedTable, metadata, ColumnFilter.all(metadata));
    }

    /** Reads the kinds of entries that there may be as the statistics say. */
    static PartitionHeader read(
            EntrySource source,
            StoredKey key,
            StoredTable storedTable,
            TableMetadata metadata,
            ColumnFilter columns) {
        PartitionHeader header = new PartitionHeader();
        StoredTableStats stats = storedTable.stats();
        if (stats.mayHaveDeletions()) {
            header.add(StoredKey.DELETION, source.get(key.entry(StoredKey.DELETION).copy()), storedTable, metadata);
        }
        if (stats.mayHaveStatics() && !columns.fetchedColumns().statics.isEmpty()) {
            header.add(StoredKey.STATIC, source.get(key.entry(StoredKey.STATIC).copy()), storedTable, metadata);
        }
        if (stats.mayHaveRangeTombstones()) {
            byte[] from = key.entry(StoredKey.RANGE_TOMBSTONE).copy();
            byte[] to = key.entry(StoredKey.ROW).copy();
            try (Rows tombstones = source.scan(Range.all().from(from).before(to))) {
                while (tombstones.next()) {
                    header.add(StoredKey.RANGE_TOMBSTONE, tombstones.value(), storedTable, metadata);
                }
            }
        }
        return header;
    }

    private void add(byte kind, byte[] value, StoredTable storedTable, TableMetadata metadata) {
        if (value != null) {
            add(kind, ByteBuffer.wrap(value), storedTable, metadata);
        }
    }

    /** Takes in the value of an entry that is no row. */
    public void add(byte kind, ByteBuffer value, StoredTable storedTable, TableMetadata metadata) {
        entries++;
        updates[kind] += FrameReader.count(value);
        switch (kind) {
            case StoredKey.DELETION -> FrameReader.addDeletions(value, deletions);
            case StoredKey.STATIC -> {
                Row row = FrameReader.row(value, true, storedTable.headers(), metadata);
                staticRow = row == null ? staticRow : row;
            }
            case StoredKey.RANGE_TOMBSTONE -> FrameReader.addRangeTombstones(value, deletions, metadata);
            default -> throw new IllegalStateException(metadata + ": a stored entry of kind " + kind);
        }
    }

    /**
     * Takes in the deletions of the same partition at a later moment. A deletion of the whole partition since then becomes a
     * range: this header's own deletion was given to the reader already, and so was the static row.
     */
    void addLater(PartitionHeader later, TableMetadata metadata) {
        MutableDeletionInfo both = new MutableDeletionInfo(partitionDeletion());
        addRanges(deletions, both, metadata);
        addRanges(later.deletions, both, metadata);
        DeletionTime all = later.partitionDeletion();
        if (all.supersedes(partitionDeletion())) {
            both.add(new RangeTombstone(Slice.ALL, all), metadata.comparator);
        }
        deletions = both;
    }

    /** Without empty ranges, which a {@code RangeTombstoneList} can have but not merge with others. */
    private static void addRanges(MutableDeletionInfo from, MutableDeletionInfo to, TableMetadata metadata) {
        Iterator<RangeTombstone> ranges = from.rangeIterator(false);
        while (ranges.hasNext()) {
            RangeTombstone range = ranges.next();
            if (!range.deletedSlice().isEmpty(metadata.comparator)) {
                to.add(range, metadata.comparator);
            }
        }
    }

    /** Whether there is nothing. */
    boolean isEmpty() {
        return deletions.isLive() && staticRow.isEmpty();
    }

    /** How many updates the entries of a kind are made of. */
    public int updates(byte kind) {
        return updates[kind];
    }

    /** How many updates all entries are made of. */
    int updates() {
        return Arrays.stream(updates).sum();
    }

    /** Whether any entry is made of several updates. */
    public boolean isOfSeveralUpdates() {
        return updates() > entries;
    }

    /** Whether merging makes it much shorter, which it cannot where there are many ranges. */
    public boolean isLong() {
        return MergeQueue.isLong(updates()) && updates() > 2 * merged();
    }

    /** How many updates would be left of it: range tombstones that do not overlap, and one of each other kind. */
    private int merged() {
        return (deletions.getPartitionDeletion().isLive() ? 0 : 1) + (staticRow.isEmpty() ? 0 : 1) + deletions.rangeCount();
    }

    /** All deletions; not to be changed. */
    public MutableDeletionInfo deletions() {
        return deletions;
    }

    /** The deletion of the whole partition; live if there is none. */
    public DeletionTime partitionDeletion() {
        return deletions.getPartitionDeletion();
    }

    /** The static row as it is stored; empty if there is none. */
    public Row storedStaticRow() {
        return staticRow;
    }

    /** The static row as a reader of these columns sees it. */
    Row staticRow(ColumnFilter columns, TableMetadata metadata) {
        Row none = org.apache.cassandra.db.rows.Rows.EMPTY_STATIC_ROW;
        if (columns.fetchedColumns().statics.isEmpty() || staticRow.isEmpty()) {
            return none;
        }
        Row seen = staticRow.filter(columns, partitionDeletion(), false, metadata);
        return seen == null ? none : seen;
    }
}
