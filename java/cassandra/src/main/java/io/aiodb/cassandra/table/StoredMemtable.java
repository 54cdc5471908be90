package io.aiodb.cassandra.table;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.memtable.Memtable;

/** A memtable whose rows are in a store. */
public interface StoredMemtable extends Memtable {
    /** Where its rows are. */
    StoredTable storedTable();

    /** The rows of a table as its memtable is now; null if they are not in a store. */
    static StoredTable storedTableOf(ColumnFamilyStore cfs) {
        return storedTableOf(cfs.getTracker().getView().getCurrentMemtable());
    }

    /** The rows of a memtable; null if they are not in a store. */
    static StoredTable storedTableOf(Memtable memtable) {
        return memtable instanceof StoredMemtable stored ? stored.storedTable() : null;
    }

    /** Makes such memtables. */
    interface Factory extends Memtable.Factory {
        /** Of the store, and of how it is written to. */
        StoreConfiguration configuration();

        /** The configuration of a factory; null if its memtables keep their rows elsewhere. */
        static StoreConfiguration configurationOf(Memtable.Factory factory) {
            return factory instanceof Factory stored ? stored.configuration() : null;
        }
    }
}
