package io.aiodb.store;

import java.util.Objects;

/**
 * What of a table memory keeps by preference. Where memory does not suffice a table comes closer to the disk by itself.
 *
 * @param keys of its index, with the values that lie there
 * @param values that lie elsewhere; {@link StorageMode#MEMORY} stands for keys in memory, too
 */
public record TableModes(StorageMode keys, StorageMode values) {
    /** Of tables that are made without a word of it. */
    public static final TableModes AUTO = new TableModes(StorageMode.AUTO, StorageMode.AUTO);

    public TableModes {
        Objects.requireNonNull(keys, "keys");
        Objects.requireNonNull(values, "values");
    }

    /** Refuses modes other than {@link #AUTO}, for a store that has none. */
    void refuseUnlessAuto(Capabilities capabilities) {
        if (!equals(AUTO)) {
            throw new StoreException.Unsupported("a store of kind " + capabilities.name() + " has no storage modes: leave both at "
                    + StorageMode.AUTO);
        }
    }
}
