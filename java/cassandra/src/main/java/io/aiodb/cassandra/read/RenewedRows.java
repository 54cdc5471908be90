package io.aiodb.cassandra.read;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;

/**
 * The entries of a range, forward, for a caller that takes long. A store ends a scan for which it would have to keep too
 * much; here another one goes on behind the last entry. So each entry is as it was at some moment since the first scan
 * began, and none is left out that was there all the time.
 */
public final class RenewedRows implements Rows {
    /** So many scans in a row may end before they have given anything. */
    static final int MAX_SCANS_WITHOUT_PROGRESS = 100;

    private final Table table;
    private final Range range;
    private final LastKey last = new LastKey();
    private Rows rows;

    /** @param range forward */
    public RenewedRows(Table table, Range range) {
        this.table = table;
        this.range = range;
        this.rows = table.scan(range);
    }

    @Override
    public boolean next() {
        for (int scans = 1; ; scans++) {
            try {
                boolean found = rows.next();
                if (found) {
                    last.set(rows.key());
                }
                return found;
            } catch (StoreException.SnapshotEnded ended) {
                if (scans == MAX_SCANS_WITHOUT_PROGRESS) {
                    throw ended;
                }
                rows.close();
                rows = table.scan(last.isSet() ? range.after(last.copy()) : range);
            }
        }
    }

    @Override
    public ByteBuffer key() {
        return rows.key();
    }

    @Override
    public ByteBuffer value() {
        return rows.value();
    }

    @Override
    public void close() {
        rows.close();
    }
}
