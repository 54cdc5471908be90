package io.aiodb.cassandra.lifecycle;

import java.util.List;

/** What JMX shows of a store, for all of its tables, and what can be changed of it while it is open. */
public interface StoreManagementMXBean {
    /** Bytes of memory that the store may take in all. */
    long getMemoryBudgetBytes();

    /**
     * Changes that until the node ends, 0 to what the store decides by itself. {@code cassandra.yaml} says it at the next start.
     *
     * @throws IllegalArgumentException if it is less than a store takes that has nothing yet, with the least in the message; nothing
     *     was changed
     */
    void setMemoryBudgetBytes(long bytes);

    /** Bytes that it takes. */
    long getMemoryBytes();

    /** Seconds until they reach the budget, at the pace of the last five minutes; -1 where they do not grow. */
    long getMemoryFullSeconds();

    /** The same for the room on the fullest of its disks. */
    long getDiskFullSeconds();

    /** What an operator should know: a budget that is more than there is, a control group that has shrunk below it, and the like. */
    List<String> getWarnings();
}
