package io.aiodb.store;

import java.util.List;
import java.util.Map;

/**
 * Sizes and counters of a store at one moment.
 *
 * @param diskBytes what the store occupies on disk
 * @param estimatedRows rows in all tables, about
 * @param counters what else the store counts, by names of its own; units are the names' last words
 * @param warnings what an operator should know, for people
 */
public record Statistics(long diskBytes, long estimatedRows, Map<String, Long> counters, List<String> warnings) {
    public Statistics {
        counters = Map.copyOf(counters);
        warnings = List.copyOf(warnings);
    }

    /** Those of a store that warns of nothing. */
    public Statistics(long diskBytes, long estimatedRows, Map<String, Long> counters) {
        this(diskBytes, estimatedRows, counters, List.of());
    }
}
