package io.aiodb.cassandra.integration;

/**
 * What a read costs a node: a moving average over the reads that it has served lately. It is forgotten while there are none, so
 * that the others try the node again. For one thread.
 */
final class ReadCost {
    /** Fewer reads say nothing. */
    static final int MIN_READS = 20;

    /** A longer mean counts as this: a few reads that waited for something else shall not keep others away for long. */
    static final double MAX_MILLIS = 10;

    /** After so many looks without any read half of it is forgotten. */
    static final int HALF_LIFE = 30;

    /**
     * What is known of a node that is not read. It is not 0, because {@code StorageProxy.pickReplica} has writes from other data
     * centres handed on by nodes without a severity, as long as there are such nodes.
     */
    static final double LEAST_MILLIS = 0.001;

    private static final double KEPT = Math.pow(0.5, 1.0 / HALF_LIFE);

    private long reads;
    private long micros;
    private double millis = LEAST_MILLIS;

    /** Whether there were reads since the last look. */
    private boolean isRead;

    /**
     * Takes reads that the node has served.
     *
     * @param moreReads how many
     * @param moreMicros how long all of them took together
     */
    void add(long moreReads, long moreMicros) {
        reads += moreReads;
        micros += moreMicros;
        isRead |= moreReads > 0;
    }

    /** Takes a failure of the store, by which reads end soon: until it is forgotten, none costs more. */
    void fail() {
        reads = 0;
        micros = 0;
        millis = MAX_MILLIS;
    }

    /** The average in milliseconds. What was added since it was last made counts for half of it. */
    double look() {
        if (reads >= MIN_READS) {
            double mean = Math.min(Math.max(micros / 1000.0 / reads, LEAST_MILLIS), MAX_MILLIS);
            millis = millis == LEAST_MILLIS ? mean : (millis + mean) / 2;
            reads = 0;
            micros = 0;
        } else if (!isRead) {
            millis = Math.max(millis * KEPT, LEAST_MILLIS);
        }
        isRead = false;
        return millis;
    }
}
