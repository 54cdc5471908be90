package io.aiodb.cassandra;

import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * Makes the memtables of one configuration.
 *
 * @param configuration of all of them; factories are equal if theirs are
 */
record AiodbFactory(Configuration configuration) implements Memtable.Factory {
    @Override
    public Memtable create(
            AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, Memtable.Owner owner) {
        OpenStore open = OpenStore.of(configuration);
        return new AiodbMemtable(this, Generation.attach(open, metadata.id), commitLogLowerBound, metadata);
    }

    /** The store has a log of its own. */
    @Override
    public boolean writesShouldSkipCommitLog() {
        return true;
    }

    /**
     * False, though they are: otherwise Cassandra would not replay what the commit log has from before the table came here,
     * and forget it.
     */
    @Override
    public boolean writesAreDurable() {
        return false;
    }

    @Override
    public boolean streamToMemtable() {
        return true;
    }

    @Override
    public boolean streamFromMemtable() {
        return true;
    }
}
