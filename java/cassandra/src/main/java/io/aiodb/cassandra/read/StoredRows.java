package io.aiodb.cassandra.read;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.table.DiskErrors;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.util.NoSuchElementException;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.CloseableIterator;

/** The rows that a scan of row entries finds, merged one by one. */
final class StoredRows implements CloseableIterator<Row> {
    private final Rows rows;
    private final StoredTable storedTable;
    private final FrameReader reader;
    private final MergeQueue.Notes notes;
    private Row next;
    private boolean closed;

    StoredRows(Rows rows, StoredTable storedTable, TableMetadata metadata, MergeQueue.Notes notes) {
        this.rows = rows;
        this.storedTable = storedTable;
        this.reader = new FrameReader(false, storedTable.headers(), metadata);
        this.notes = notes;
    }

    @Override
    public boolean hasNext() {
        try {
            return advance();
        } catch (StoreException failure) {
            throw DiskErrors.ofRead(failure, storedTable.open());
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
