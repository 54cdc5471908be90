package io.aiodb.cassandra.integration;

import static org.apache.cassandra.utils.Throwables.maybeFail;

import java.util.Collection;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.SSTableMultiWriter;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableId;

/**
 * Writes the SSTable that streaming wants of a memtable that goes on. Cassandra leaves it behind
 * ({@code ColumnFamilyStore.writeAndAddMemtableRanges}, whose tracker is {@code DO_NOT_TRACK}); this one belongs
 * to a transaction that is never committed: it is removed when its last reader is done, or when the node starts again.
 */
public final class TemporarySSTableWriter implements SSTableMultiWriter {
    private final SSTableMultiWriter writer;
    private final LifecycleTransaction transaction;

    /** Whether readers decide when it ends. */
    private boolean handedOut;

    /** @param transaction of its own, which nobody commits */
    public TemporarySSTableWriter(SSTableMultiWriter writer, LifecycleTransaction transaction) {
        this.writer = writer;
        this.transaction = transaction;
    }

    @Override
    public void append(UnfilteredRowIterator partition) {
        writer.append(partition);
    }

    @Override
    public Collection<SSTableReader> finish(boolean openResult) {
        return temporary(writer.finish(openResult));
    }

    @Override
    public Collection<SSTableReader> finished() {
        return writer.finished();
    }

    private Collection<SSTableReader> temporary(Collection<SSTableReader> written) {
        for (SSTableReader sstable : written) {
            sstable.markObsolete(() -> maybeFail(transaction.abort(null)));
            handedOut = true;
        }
        return written;
    }

    @Override
    public SSTableMultiWriter setOpenResult(boolean openResult) {
        writer.setOpenResult(openResult);
        return this;
    }

    @Override
    public String getFilename() {
        return writer.getFilename();
    }

    @Override
    public long getBytesWritten() {
        return writer.getBytesWritten();
    }

    @Override
    public long getOnDiskBytesWritten() {
        return writer.getOnDiskBytesWritten();
    }

    @Override
    public TableId getTableId() {
        return writer.getTableId();
    }

    @Override
    public Throwable commit(Throwable accumulate) {
        return writer.commit(accumulate);
    }

    @Override
    public Throwable abort(Throwable accumulate) {
        return transaction.abort(writer.abort(accumulate));
    }

    @Override
    public void prepareToCommit() {
        writer.prepareToCommit();
    }

    @Override
    public void close() {
        writer.close();
        if (!handedOut) {
            maybeFail(transaction.abort(null));
        }
    }
}
