package io.aiodb.cassandra.integration;

import java.util.Collection;
import java.util.List;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.SSTableMultiWriter;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableId;

/** Stands for the writer of an SSTable that a validation would read once: the validation reads the store instead. */
public final class ValidationWriter implements SSTableMultiWriter {
    private final ValidationReader reader;

    /** @param reader given as the SSTable that was written */
    public ValidationWriter(ValidationReader reader) {
        this.reader = reader;
    }

    @Override
    public void append(UnfilteredRowIterator partition) {
        throw new UnsupportedOperationException("what is validated is not written: " + partition.partitionKey());
    }

    @Override
    public Collection<SSTableReader> finish(boolean openResult) {
        return finished();
    }

    @Override
    public Collection<SSTableReader> finished() {
        return List.of(reader);
    }

    @Override
    public SSTableMultiWriter setOpenResult(boolean openResult) {
        return this;
    }

    @Override
    public String getFilename() {
        return reader.getFilename();
    }

    @Override
    public long getBytesWritten() {
        return 0;
    }

    @Override
    public long getOnDiskBytesWritten() {
        return 0;
    }

    @Override
    public TableId getTableId() {
        return reader.metadata().id;
    }

    @Override
    public Throwable commit(Throwable accumulate) {
        return accumulate;
    }

    @Override
    public Throwable abort(Throwable accumulate) {
        reader.selfRef().release();
        return accumulate;
    }

    @Override
    public void prepareToCommit() {
        // There is nothing to keep.
    }

    @Override
    public void close() {
        // The validation that has the reader ends it.
    }
}
