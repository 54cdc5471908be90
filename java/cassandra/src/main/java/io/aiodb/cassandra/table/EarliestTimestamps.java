package io.aiodb.cassandra.table;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The earliest timestamp that was written to any partition of a stripe since a moment. A pass that began then has not seen
 * these writes, so a deletion that hides any of them must not be removed.
 */
public final class EarliestTimestamps {
    private final AtomicLongArray earliest = new AtomicLongArray(PartitionLocks.STRIPES);

    EarliestTimestamps() {
        for (int stripe = 0; stripe < earliest.length(); stripe++) {
            earliest.set(stripe, Long.MAX_VALUE);
        }
    }

    /** Takes note of a write to come. The caller holds the stripe. */
    void lower(int stripe, long timestamp) {
        earliest.accumulateAndGet(stripe, timestamp, Math::min);
    }

    /** Whether all that was written to a stripe is later than a time. The caller holds the stripe alone. */
    public boolean areAfter(int stripe, long timestamp) {
        return earliest.get(stripe) > timestamp;
    }
}
