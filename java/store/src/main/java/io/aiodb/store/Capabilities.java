package io.aiodb.store;

import java.util.Set;

/**
 * What a store can do, and how much of it. It does not change while the store is open.
 *
 * @param name the store's kind, as in {@link Stores#open}
 * @param maxKeyBytes the longest key; the shortest has one byte
 * @param maxValueBytes the longest value, also after appending to it
 * @param maxRangeBoundBytes the longest bound of a range delete
 * @param durabilities the classes that the store tells apart; a write of another class gets the next stronger one
 * @param blindAppend whether {@link Batch#append} writes the operand without reading the value
 * @param blindRangeDelete whether {@link Batch#deleteRange} takes a time that does not depend on the rows in the range
 * @param instantTruncate whether {@link Table#truncate} takes a time that does not depend on the rows in the table
 * @param parallelWriters whether writers of different threads share writes of the device instead of taking turns
 * @param storageModes whether tables have {@link TableModes} other than {@link TableModes#AUTO}
 */
public record Capabilities(
        String name,
        int maxKeyBytes,
        int maxValueBytes,
        int maxRangeBoundBytes,
        Set<Durability> durabilities,
        boolean blindAppend,
        boolean blindRangeDelete,
        boolean instantTruncate,
        boolean parallelWriters,
        boolean storageModes) {

    public Capabilities {
        durabilities = Set.copyOf(durabilities);
    }

    /** Refuses a key that the store cannot hold. */
    public void checkKey(int length) {
        if (length < 1 || length > maxKeyBytes) {
            throw new StoreException.Limit("a key of " + length + " bytes: keys have 1 to " + maxKeyBytes
                    + " bytes in a store of kind " + name);
        }
    }

    /** Refuses a value that the store cannot hold. */
    public void checkValue(int length) {
        if (length > maxValueBytes) {
            throw new StoreException.Limit("a value of " + length + " bytes: values have at most " + maxValueBytes
                    + " bytes in a store of kind " + name);
        }
    }

    /** Refuses a bound of a range delete that the store cannot hold. */
    public void checkRangeBound(int length) {
        if (length > maxRangeBoundBytes) {
            throw new StoreException.Limit("a bound of " + length + " bytes: range deletes take bounds of at most "
                    + maxRangeBoundBytes + " bytes in a store of kind " + name);
        }
    }
}
