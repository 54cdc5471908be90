package io.aiodb.cassandra.write;

import io.aiodb.store.Capabilities;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.schema.TableMetadata;

/** How long a primary key may be. */
public final class KeyLimit {
    private KeyLimit() {}

    /**
     * Refuses a key that the store cannot hold.
     *
     * @param length of the key as it is stored, in bytes
     * @throws InvalidRequestException that says how long it is and may be
     */
    public static void check(int length, TableMetadata table, Capabilities capabilities) {
        if (length > capabilities.maxKeyBytes()) {
            throw new InvalidRequestException(String.format(
                    "%s: a primary key of %d bytes as it is stored; tables in a store of kind %s take at most %d: make it"
                            + " shorter, or use another memtable",
                    table, length, capabilities.name(), capabilities.maxKeyBytes()));
        }
    }
}
