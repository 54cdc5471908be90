package io.aiodb.store;

import java.util.Map;
import java.util.OptionalDouble;

/**
 * What is known of one table at one moment.
 *
 * @param estimatedRows its rows, about
 * @param modes what of it memory is to keep by preference
 * @param keysInMemory the share of its keys that is in memory, from 0 to 1, an estimate; empty if the store does not know
 * @param valuesInMemory the share of its values, an estimate as well; empty also where there are none
 * @param counters what else the store counts of it, by names of its own; units are the names' last words
 */
public record TableStatistics(
        long estimatedRows,
        TableModes modes,
        OptionalDouble keysInMemory,
        OptionalDouble valuesInMemory,
        Map<String, Long> counters) {
    public TableStatistics {
        counters = Map.copyOf(counters);
    }
}
