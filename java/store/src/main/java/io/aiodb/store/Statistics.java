package io.aiodb.store;

import java.util.Map;

/**
 * Sizes and counters of a store at one moment.
 *
 * @param diskBytes what the store occupies on disk
 * @param estimatedRows rows in all tables, about
 * @param counters what else the store counts, by names of its own; units are the names' last words
 */
public record Statistics(long diskBytes, long estimatedRows, Map<String, Long> counters) {
    public Statistics {
        counters = Map.copyOf(counters);
    }
}
