package io.aiodb.cassandra.read;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Table;

/** Where a read takes its entries from: a table as it is at each call, or as it was at one moment. */
interface EntrySource extends AutoCloseable {
    /** The value of a key, or null. */
    byte[] get(byte[] key);

    /** The rows of a range. To be closed. */
    Rows scan(Range range);

    @Override
    void close();

    /** A table as it is at each call. */
    static EntrySource latest(Table table) {
        return new EntrySource() {
            @Override
            public byte[] get(byte[] key) {
                return table.get(key);
            }

            @Override
            public Rows scan(Range range) {
                return table.scan(range);
            }

            @Override
            public void close() {}
        };
    }

    /** A table as it is now. */
    static EntrySource snapshot(Table table) {
        Snapshot snapshot = table.store().snapshot();
        return new EntrySource() {
            @Override
            public byte[] get(byte[] key) {
                return snapshot.get(table, key);
            }

            @Override
            public Rows scan(Range range) {
                return snapshot.scan(table, range);
            }

            @Override
            public void close() {
                snapshot.close();
            }
        };
    }
}
