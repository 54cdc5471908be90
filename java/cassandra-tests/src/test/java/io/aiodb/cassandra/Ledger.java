package io.aiodb.cassandra;

import java.util.BitSet;
import java.util.TreeSet;

/**
 * Which rows were sent, which were acknowledged, and what follows for a reader after a crash. Rows have numbers, in the
 * order in which they are sent. May be used by several threads.
 */
final class Ledger {
    private final BitSet acknowledged = new BitSet();
    private final TreeSet<Integer> inFlight = new TreeSet<>();
    private int next;

    /** Rows from here on must be there once they are acknowledged. */
    private int requiredFrom;

    /** Rows below this must be gone: they were acknowledged before a truncation began which was acknowledged. */
    private int goneBelow;

    /** The number of the next row, which is in flight from now on. */
    synchronized int send() {
        inFlight.add(next);
        return next++;
    }

    synchronized void acknowledge(int row) {
        acknowledged.set(row);
        inFlight.remove(row);
    }

    /** How many rows were acknowledged. */
    synchronized int count() {
        return acknowledged.cardinality();
    }

    /** The first row that a truncation which begins now may not meet; all before it are acknowledged. */
    synchronized int beginTruncation() {
        requiredFrom = Integer.MAX_VALUE;
        return inFlight.isEmpty() ? next : inFlight.first();
    }

    /** The truncation was acknowledged. */
    synchronized void endTruncation(int began) {
        goneBelow = began;
        requiredFrom = next;
    }

    /** The node crashed and runs again: nothing is in flight, and nobody knows whether a truncation took place. */
    synchronized void crash() {
        inFlight.clear();
        if (requiredFrom == Integer.MAX_VALUE) {
            requiredFrom = next;
        }
    }

    /** How many acknowledged rows that must be there were not found. */
    synchronized int missing(BitSet found) {
        return lost(found).cardinality();
    }

    private BitSet lost(BitSet found) {
        BitSet lost = new BitSet();
        lost.or(acknowledged);
        lost.andNot(found);
        lost.clear(0, requiredFrom);
        return lost;
    }

    /** Fails if rows were found that may not be there, or others are missing. */
    synchronized void check(BitSet found, String when) {
        BitSet lost = lost(found);
        if (!lost.isEmpty()) {
            throw new AssertionError(lost.cardinality() + " of " + acknowledged.cardinality()
                    + " acknowledged rows are missing after " + when + ", the first " + lost.nextSetBit(0));
        }
        int first = found.nextSetBit(0);
        if (first >= 0 && first < goneBelow) {
            throw new AssertionError("row " + first + " is there after " + when + ", though it was truncated");
        }
        if (found.length() > next) {
            int last = found.length() - 1;
            throw new AssertionError("row " + last + " is there after " + when + ", which nobody wrote");
        }
    }
}
