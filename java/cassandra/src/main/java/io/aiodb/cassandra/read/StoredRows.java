package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.table.DiskErrors;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.utils.CloseableIterator;

/** The rows that a scan of row entries finds, merged one by one. */
final class StoredRows implements CloseableIterator<Row> {
    private final Rows rows;
    private final FrameReader reader;
    private final OpenStore open;
    private final MergeQueue.Notes notes;
    private Row next;
    private boolean closed;

    /**
     * @param rows closed with this
     * @param open the store that they are of
     */
    StoredRows(Rows rows, FrameReader reader, OpenStore open, MergeQueue.Notes notes) {
        this.rows = rows;
        this.reader = reader;
        this.open = open;
        this.notes = notes;
    }

    @Override
    public boolean hasNext() {
        try {
            return advance();
        } catch (StoreException failure) {
            throw DiskErrors.ofRead(failure, open);
        }
    }

    private boolean advance() {
        while (next == null && !closed) {
            if (rows.next()) {
                next = reader.row(rows.value());
                if (MergeQueue.isLong(reader.updates())) {
                    notes.row(rows.key());
                }
            } else {
                close();
            }
        }
        return next != null;
    }

    @Override
    public Row next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        Row row = next;
        next = null;
        return row;
    }

    @Override
    public void close() {
        closed = true;
        rows.close();
        notes.submit();
    }
}
