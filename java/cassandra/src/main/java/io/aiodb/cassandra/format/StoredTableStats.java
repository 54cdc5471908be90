package io.aiodb.cassandra.format;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;

/**
 * Bounds of all rows of a stored table together, known also right after a restart: of their times, and which kinds
 * of entries there may be. It only ever widens. A wider bound is stored before the update that needs it, and the bounds go
 * further than needed, so that almost no update has to: back by an hour, and ahead by some seconds, since rows that are
 * written soon after a restart are compared with them.
 */
public final class StoredTableStats {
    private static final byte DELETIONS = 1;
    private static final byte STATICS = 2;
    private static final byte RANGE_TOMBSTONES = 4;
    private static final byte ROW_DELETIONS = 8;

    private static final long MARGIN_SECONDS = 3600;
    private static final long MARGIN_MICROS = MARGIN_SECONDS * 1_000_000;

    private static final long AHEAD_MICROS = 10_000_000;

    private static final int STORED_BYTES = 3 * Long.BYTES + 1;

    private static final EncodingStats NONE = EncodingStats.NO_STATS;

    private record Bounds(long timestamp, long latestTimestamp, long localDeletionTime, byte kinds) {
        boolean covers(long otherTimestamp, long otherLatest, long otherDeletionTime, byte otherKinds) {
            return timestamp <= otherTimestamp
                    && latestTimestamp >= otherLatest
                    && localDeletionTime <= otherDeletionTime
                    && (kinds & otherKinds) == otherKinds;
        }

        Bounds with(Bounds other) {
            return new Bounds(
                    Math.min(timestamp, other.timestamp),
                    Math.max(latestTimestamp, other.latestTimestamp),
                    Math.min(localDeletionTime, other.localDeletionTime),
                    (byte) (kinds | other.kinds));
        }
    }

    private static final Bounds NOTHING = new Bounds(Long.MAX_VALUE, Long.MIN_VALUE, Cell.NO_DELETION_TIME, (byte) 0);

    private volatile boolean empty;
    private volatile Bounds bounds;

    /** @param stored the bytes that were stored last; empty for a new stored table */
    public StoredTableStats(byte[] stored) {
        ByteBuffer in = ByteBuffer.wrap(stored);
        empty = stored.length == 0;
        bounds = empty ? NOTHING : new Bounds(in.getLong(), in.getLong(), in.getLong(), in.get());
    }

    /** Takes an update with its latest timestamp in; the bytes that must be stored before it are given to {@code store}. */
    public void cover(PartitionUpdate update, long latest, Consumer<ByteBuffer> store) {
        EncodingStats stats = stats(update);
        // EncodingStats says with the numbers of NO_STATS that there is no time.
        long timestamp = stats.minTimestamp == NONE.minTimestamp ? Long.MAX_VALUE : stats.minTimestamp;
        long deletionTime = hasDeletionTimes(update) ? stats.minLocalDeletionTime : Cell.NO_DELETION_TIME;
        byte kinds = kinds(update);
        if (empty || !bounds.covers(timestamp, latest, deletionTime, kinds)) {
            Bounds needed = new Bounds(
                    timestamp == Long.MAX_VALUE ? timestamp : lowered(timestamp, MARGIN_MICROS),
                    latest > Long.MAX_VALUE - AHEAD_MICROS ? Long.MAX_VALUE : latest + AHEAD_MICROS,
                    deletionTime == Cell.NO_DELETION_TIME ? deletionTime : Math.max(0, deletionTime - MARGIN_SECONDS),
                    kinds);
            widen(needed, store);
        }
    }

    /** The bounds of an update's times. */
    public static EncodingStats stats(PartitionUpdate update) {
        EncodingStats known = update.stats();
        // Nobody has looked, which is so for deletes of partitions.
        return known != NONE
                ? known
                : EncodingStats.Collector.collect(update.staticRow(), update.iterator(), update.deletionInfo());
    }

    /** Whether an update deletes anything, or has something that expires. */
    public static boolean hasDeletionTimes(PartitionUpdate update) {
        return stats(update).minLocalDeletionTime != NONE.minLocalDeletionTime;
    }

    /** Takes in all that another stored table's covers. */
    public void cover(StoredTableStats other, Consumer<ByteBuffer> store) {
        widen(other.bounds, store);
    }

    private synchronized void widen(Bounds needed, Consumer<ByteBuffer> store) {
        Bounds wider = bounds.with(needed);
        if (!empty && wider.equals(bounds)) {
            return;
        }
        store.accept(ByteBuffer.allocate(STORED_BYTES)
                .putLong(wider.timestamp)
                .putLong(wider.latestTimestamp)
                .putLong(wider.localDeletionTime)
                .put(wider.kinds)
                .flip());
        bounds = wider;
        empty = false;
    }

    private static long lowered(long time, long margin) {
        // The smallest number says that there is no time.
        return time < Long.MIN_VALUE + 1 + margin ? Long.MIN_VALUE + 1 : time - margin;
    }

    private static byte kinds(PartitionUpdate update) {
        DeletionInfo deletions = update.deletionInfo();
        int kinds = 0;
        if (!deletions.getPartitionDeletion().isLive()) {
            kinds |= DELETIONS;
        }
        if (deletions.hasRanges()) {
            kinds |= RANGE_TOMBSTONES;
        }
        if (!update.staticRow().isEmpty()) {
            kinds |= STATICS;
        }
        for (Row row : update) {
            if (!row.deletion().isLive()) {
                kinds |= ROW_DELETIONS;
            }
        }
        return (byte) kinds;
    }

    /** Whether nothing was ever written. */
    public boolean isEmpty() {
        return empty;
    }

    /** Whether there may be deletions of whole partitions. */
    public boolean mayHaveDeletions() {
        return (bounds.kinds & DELETIONS) != 0;
    }

    /** Whether there may be static rows. */
    public boolean mayHaveStatics() {
        return (bounds.kinds & STATICS) != 0;
    }

    /** Whether there may be range tombstones. */
    public boolean mayHaveRangeTombstones() {
        return (bounds.kinds & RANGE_TOMBSTONES) != 0;
    }

    /** Whether there may be deletions of single rows. */
    public boolean mayHaveRowDeletions() {
        return (bounds.kinds & ROW_DELETIONS) != 0;
    }

    /** Not earlier than any timestamp; the least number if there is none. */
    public long maxTimestamp() {
        return bounds.latestTimestamp;
    }

    /** Not later than any timestamp; the greatest number if there is none. */
    public long minTimestamp() {
        return bounds.timestamp;
    }

    /** Not later than any time of deletion or expiry; the greatest number if there is none. */
    public long minLocalDeletionTime() {
        return bounds.localDeletionTime;
    }

    /** For serializing rows of the stored table. */
    public EncodingStats encodingStats() {
        Bounds now = bounds;
        return new EncodingStats(
                now.timestamp == Long.MAX_VALUE ? LivenessInfo.NO_TIMESTAMP : now.timestamp, now.localDeletionTime, 0);
    }
}
