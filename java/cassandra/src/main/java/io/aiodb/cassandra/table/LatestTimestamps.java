package io.aiodb.cassandra.table;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The latest timestamp that any partition of a stripe has in a stored table, or one that is later. A row that is all newer, and
 * has all that a row can have, need not be merged with what is stored: it can take its place without that being read.
 */
public final class LatestTimestamps {
    private final AtomicLongArray latest = new AtomicLongArray(PartitionLocks.STRIPES);

    /** @param bound no timestamp that is stored is later */
    LatestTimestamps(long bound) {
        for (int stripe = 0; stripe < latest.length(); stripe++) {
            latest.set(stripe, bound);
        }
    }

    /** Whether all that is stored of a stripe is from before a time. Who does not hold the stripe alone asks again then. */
    public boolean areBefore(int stripe, long timestamp) {
        return latest.get(stripe) < timestamp;
    }

    /** Takes note of what is about to be written. The caller holds the stripe. */
    public void raise(int stripe, long timestamp) {
        latest.accumulateAndGet(stripe, timestamp, Math::max);
    }
}
