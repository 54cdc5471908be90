package io.aiodb.cassandra.table;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The latest timestamp that any partition of a stripe has in a stored table, or one that is later. A row that is all newer,
 * and has all that a row can have, need not be merged with the stored one: it can take its place without a read.
 */
public final class LatestTimestamps {
    private final AtomicLongArray latest = new AtomicLongArray(PartitionLocks.STRIPES);

    /** @param bound no timestamp that is stored is later */
    LatestTimestamps(long bound) {
        for (int stripe = 0; stripe < latest.length(); stripe++) {
            latest.set(stripe, bound);
        }
    }

    /**
     * Whether all that is stored of a stripe is from before a time. A caller that does not hold the stripe alone asks again
     * when it does.
     */
    public boolean areBefore(int stripe, long timestamp) {
        return latest.get(stripe) < timestamp;
    }

    /** Takes note of a write to come. The caller holds the stripe. */
    public void raise(int stripe, long timestamp) {
        latest.accumulateAndGet(stripe, timestamp, Math::max);
    }
}
