package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.read.PartitionHeader;
import io.aiodb.cassandra.read.RenewedRows;
import io.aiodb.cassandra.table.EarliestTimestamps;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DeletionPurger;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

/**
 * One pass over a stored table that removes entries that no reader can see any more: rows and cells that are deleted,
 * overwritten, expired, or of dropped columns, and tombstones that are old enough. An entry that is as it should be is only
 * read.
 */
public final class Purge {
    /** Rows that are rewritten together, while the partition's writers wait. */
    private static final int BATCH_ROWS = 32;

    private final StoredTable storedTable;
    private final TableMetadata metadata;
    private final Supplier<DeletionPurger> purgers;
    private final long nowSeconds;
    private final EntryRewriter rewriter;
    private final FrameReader reader;
    private final List<byte[]> candidates = new ArrayList<>();

    /** The writes that it does not see, since it began before them. */
    private EarliestTimestamps written;

    /** Which tombstones are old enough. */
    private DeletionPurger purger;

    private StoredKey.Partition partition;
    private PartitionHeader header;

    /** Whether a row of the partition had to stay as it is. */
    private boolean leftOut;

    private long bytes;
    private long rewritten;

    /**
     * Makes a pass.
     *
     * @param purgers asked once, after the pass has begun to watch writes, which tombstones need not be kept.
     *     The answer need not be right for later writes
     */
    public Purge(StoredTable storedTable, TableMetadata metadata, Supplier<DeletionPurger> purgers, long nowSeconds) {
        this.storedTable = storedTable;
        this.metadata = metadata;
        this.purgers = purgers;
        this.nowSeconds = nowSeconds;
        this.rewriter = new EntryRewriter(storedTable, metadata);
        this.reader = new FrameReader(false, storedTable.headers(), metadata);
    }

    /** Goes through all rows, until {@code stopped}. */
    public void run(BooleanSupplier stopped) {
        written = storedTable.purgeSchedule().watch(storedTable.open().locks());
        try {
            purger = purgers.get();
            goThrough(stopped);
        } finally {
            storedTable.purgeSchedule().unwatch();
        }
    }

    private void goThrough(BooleanSupplier stopped) {
        try (Rows rows = new RenewedRows(storedTable.table(), Range.all())) {
            while (rows.next()) {
                if (stopped.getAsBoolean()) {
                    // The partition's deletions hide rows that were not looked at.
                    return;
                }
                ByteBuffer key = rows.key();
                if (partition == null || !partition.has(key)) {
                    leave();
                    partition = StoredKey.parse(key, metadata.partitioner);
                    header = new PartitionHeader();
                    leftOut = false;
                }
                look(key, rows.value());
            }
        }
        leave();
    }

    /** How much it has read, in bytes. */
    long bytes() {
        return bytes;
    }

    /** How many rows and deletions were replaced or removed. */
    long rewritten() {
        return rewritten;
    }

    private void look(ByteBuffer key, ByteBuffer value) {
        bytes += key.remaining() + value.remaining();
        byte kind = partition.kind(key);
        if (kind != StoredKey.ROW) {
            header.add(kind, value, storedTable, metadata);
            return;
        }
        Row row = reader.row(value);
        if (row == null || reader.updates() > 1 || !row.equals(kept(row, header))) {
            byte[] copy = new byte[key.remaining()];
            key.get(key.position(), copy);
            candidates.add(copy);
        }
        if (candidates.size() == BATCH_ROWS) {
            rewriteCandidates();
        }
    }

    /** The part of a row that a reader sees; null if there is none. */
    private Row kept(Row row, PartitionHeader deletions) {
        DeletionTime active = deletions.partitionDeletion();
        if (!row.isStatic()) {
            Clustering<?> clustering = row.clustering();
            RangeTombstone covering = deletions.deletions().rangeCovering(clustering);
            if (covering != null && covering.deletionTime().supersedes(active)) {
                active = covering.deletionTime();
            }
        }
        Row seen = row.filter(ColumnFilter.all(metadata), active, false, metadata);
        return seen == null ? null : seen.purge(this::hidesNothing, nowSeconds, false);
    }

    private void rewriteCandidates() {
        if (candidates.isEmpty()) {
            return;
        }
        PartitionHeader deletions = header;
        leftOut |= !rewriter.rows(partition.key(), candidates, false, row -> kept(row, deletions));
        rewritten += candidates.size();
        candidates.clear();
    }

    /**
     * The deletions of a partition come last: until then they hide the rows that they have deleted, and go on doing so where
     * those stay.
     */
    private void leave() {
        if (partition == null) {
            return;
        }
        rewriteCandidates();
        PartitionHeader deletions = header;
        boolean several = header.isOfSeveralUpdates();
        Row staticRow = header.storedStaticRow();
        if (!staticRow.isEmpty() && (several || !staticRow.equals(kept(staticRow, header)))) {
            List<byte[]> key = List.of(partition.entry(StoredKey.STATIC));
            leftOut |= !rewriter.rows(partition.key(), key, true, row -> kept(row, deletions));
            rewritten++;
        }
        if (leftOut) {
            partition = null;
            return;
        }
        DeletionPurger settled = this::hidesNothing;
        if (header.deletions().hasRanges() && (several || anyRange())) {
            DeletionTime all = header.partitionDeletion();
            rewriter.rangeTombstones(partition, time -> time.supersedes(all) && !settled.shouldPurge(time));
            rewritten++;
        }
        if (!header.partitionDeletion().isLive() && (several || purger.shouldPurge(header.partitionDeletion()))) {
            rewriter.deletion(partition, time -> !settled.shouldPurge(time));
            rewritten++;
        }
        partition = null;
    }

    /**
     * Whether a deletion or an expired cell is old enough, and no write came that it hides: the pass may not have seen such
     * a write, and the commit log may have it without the deletion. Nobody writes to the partition meanwhile.
     */
    private boolean hidesNothing(long timestamp, long localDeletionTime) {
        return purger.shouldPurge(timestamp, localDeletionTime)
                && written.areAfter(PartitionLocks.of(partition.key()), timestamp);
    }

    private boolean anyRange() {
        var ranges = header.deletions().rangeIterator(false);
        while (ranges.hasNext()) {
            DeletionTime time = ranges.next().deletionTime();
            if (purger.shouldPurge(time) || !time.supersedes(header.partitionDeletion())) {
                return true;
            }
        }
        return false;
    }
}
