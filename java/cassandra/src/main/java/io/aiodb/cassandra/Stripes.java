package io.aiodb.cassandra;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Tells readers of several keys of a partition whether its writers were at work meanwhile: a writer counts before and after
 * its batch, a reader compares. Partitions share stripes, which at worst makes a reader read twice.
 */
final class Stripes {
    /** No reading can be judged: writers are at work. */
    static final long BUSY = -1;

    private static final int STRIPES = 4096;

    /** Longs of a cache line, so that writers of two stripes do not disturb each other. */
    private static final int SPREAD = 8;

    private final AtomicLongArray begun = new AtomicLongArray(STRIPES * SPREAD);
    private final AtomicLongArray ended = new AtomicLongArray(STRIPES * SPREAD);

    /** The stripe of a partition. */
    static int of(Object partition) {
        int hash = partition.hashCode();
        return ((hash ^ hash >>> 16) & STRIPES - 1) * SPREAD;
    }

    void writeBegins(int stripe) {
        begun.incrementAndGet(stripe);
    }

    void writeEnds(int stripe) {
        ended.incrementAndGet(stripe);
    }

    /** What {@link #isUnchanged} wants to know, or {@link #BUSY}. */
    long readBegins(int stripe) {
        // In this order: a writer that begins in between is then seen as at work.
        long writesEnded = ended.get(stripe);
        return begun.get(stripe) == writesEnded ? writesEnded : BUSY;
    }

    /** Whether no writer was at work since. */
    boolean isUnchanged(int stripe, long readBegan) {
        return begun.get(stripe) == readBegan;
    }
}
