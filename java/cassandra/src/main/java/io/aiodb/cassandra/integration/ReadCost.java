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

    /** After so many looks without reads half of it is forgotten. */
    static final int HALF_LIFE = 30;

    /** Less than this is nothing. */
    static final double LEAST_MILLIS = 0.001;

    private static final double KEPT = Math.pow(0.5, 1.0 / HALF_LIFE);

    private long reads;
    private long micros;
    private double millis;

    /**
     * Takes reads that the node has served.
     *
     * @param moreReads how many
     * @param moreMicros how long all of them took together
     */
    void add(long moreReads, long moreMicros) {
        reads += moreReads;
        micros += moreMicros;
    }

    /** Takes a failure of the store, by which reads end soon: until it is forgotten, none costs more. */
    void fail() {
        reads = 0;
        micros = 0;
        millis = MAX_MILLIS;
    }

    /** The average in milliseconds, 0 if it is not known. What was added since the last look counts for half of it. */
    double look() {
        if (reads < MIN_READS) {
            millis = millis < LEAST_MILLIS ? 0 : millis * KEPT;
            return millis;
        }
        double mean = Math.min(micros / 1000.0 / reads, MAX_MILLIS);
        millis = millis == 0 ? mean : (millis + mean) / 2;
        reads = 0;
        micros = 0;
        return millis;
    }
}
