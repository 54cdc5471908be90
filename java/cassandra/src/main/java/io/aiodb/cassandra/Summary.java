package io.aiodb.cassandra;

import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.EncodingStats;

/**
 * What is known of all rows of a generation together, also right after a restart: bounds of their times, and which kinds of
 * entries there may be. It only ever widens. What widens it is stored before the update that needs it, and the bounds go an
 * hour further than needed, so that almost no update has to.
 */
final class Summary {
    private static final byte DELETIONS = 1;
    private static final byte STATICS = 2;
    private static final byte RANGE_TOMBSTONES = 4;

    private static final long MARGIN_SECONDS = 3600;
    private static final long MARGIN_MICROS = MARGIN_SECONDS * 1_000_000;

    private static final int FRAME_BYTES = 2 * Long.BYTES + 1;

    private static final EncodingStats NONE = EncodingStats.NO_STATS;

    private record Bounds(long timestamp, long localDeletionTime, byte kinds) {
        boolean covers(long otherTimestamp, long otherDeletionTime, byte otherKinds) {
            return timestamp <= otherTimestamp
                    && localDeletionTime <= otherDeletionTime
                    && (kinds & otherKinds) == otherKinds;
        }

        Bounds with(Bounds other) {
            return new Bounds(
                    Math.min(timestamp, other.timestamp),
                    Math.min(localDeletionTime, other.localDeletionTime),
                    (byte) (kinds | other.kinds));
        }
    }

    private static final Bounds NOTHING = new Bounds(Long.MAX_VALUE, Cell.NO_DELETION_TIME, (byte) 0);

    private volatile boolean empty;
    private volatile Bounds bounds;

    /** @param stored what was stored of it: all frames one after the other; empty for a new generation */
    Summary(byte[] stored) {
        Bounds found = NOTHING;
        ByteBuffer frames = ByteBuffer.wrap(stored);
        while (frames.remaining() >= FRAME_BYTES) {
            found = found.with(new Bounds(frames.getLong(), frames.getLong(), frames.get()));
        }
        bounds = found;
        empty = stored.length == 0;
    }

    /** Takes an update in; what must be kept for it first is given to {@code store}. */
    void cover(PartitionUpdate update, Consumer<ByteBuffer> store) {
        EncodingStats stats = update.stats();
        if (stats == NONE) {
            // Nobody has looked, which is so for deletes of partitions.
            stats = EncodingStats.Collector.collect(update.staticRow(), update.iterator(), update.deletionInfo());
        }
        // Cassandra says with these numbers that there is no time.
        long timestamp = stats.minTimestamp == NONE.minTimestamp ? Long.MAX_VALUE : stats.minTimestamp;
        long deletionTime = stats.minLocalDeletionTime == NONE.minLocalDeletionTime
                ? Cell.NO_DELETION_TIME
                : stats.minLocalDeletionTime;
        byte kinds = kinds(update);
        if (empty || !bounds.covers(timestamp, deletionTime, kinds)) {
            Bounds needed = new Bounds(
                    timestamp == Long.MAX_VALUE ? timestamp : lowered(timestamp, MARGIN_MICROS),
                    deletionTime == Cell.NO_DELETION_TIME ? deletionTime : Math.max(0, deletionTime - MARGIN_SECONDS),
                    kinds);
            widen(needed, store);
        }
    }

    /** Takes in all that another generation's covers. */
    void cover(Summary other, Consumer<ByteBuffer> store) {
        widen(other.bounds, store);
    }

    private synchronized void widen(Bounds needed, Consumer<ByteBuffer> store) {
        Bounds wider = bounds.with(needed);
        if (!empty && wider.equals(bounds)) {
            return;
        }
        store.accept(ByteBuffer.allocate(FRAME_BYTES)
                .putLong(wider.timestamp)
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
        return (byte) kinds;
    }

    /** Whether nothing was ever written. */
    boolean isEmpty() {
        return empty;
    }

    boolean mayHaveDeletions() {
        return (bounds.kinds & DELETIONS) != 0;
    }

    boolean mayHaveStatics() {
        return (bounds.kinds & STATICS) != 0;
    }

    boolean mayHaveRangeTombstones() {
        return (bounds.kinds & RANGE_TOMBSTONES) != 0;
    }

    /** Not later than any timestamp; the greatest number if there is none. */
    long minTimestamp() {
        return bounds.timestamp;
    }

    /** Not later than any time of deletion or expiry; the greatest number if there is none. */
    long minLocalDeletionTime() {
        return bounds.localDeletionTime;
    }

    /** For serializing rows of the generation. */
    EncodingStats encodingStats() {
        Bounds now = bounds;
        return new EncodingStats(
                now.timestamp == Long.MAX_VALUE ? LivenessInfo.NO_TIMESTAMP : now.timestamp, now.localDeletionTime, 0);
    }
}
