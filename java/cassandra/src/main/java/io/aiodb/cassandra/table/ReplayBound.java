package io.aiodb.cassandra.table;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.utils.concurrent.OpOrder;

/**
 * Up to where a node that starts need not replay the records of a table in its commit log. There are some from before the
 * table came to this memtable, and from around changes of the schema, and the log keeps them as long as other tables need
 * their segments. Replayed after a purge they would bring back deleted rows. {@code CommitLogReplayer.construct} begins
 * behind the position of the last truncate.
 */
public final class ReplayBound {
    /** How many periods in which writes are logged it covers; none have begun when the node has started. */
    private int periods;

    ReplayBound() {}

    /**
     * Says, durably, that all that was logged until now is in a stored table. False if it may not be: then nothing that
     * hides rows may be removed.
     */
    public synchronized boolean raise(ColumnFamilyStore cfs, StoredTable storedTable) {
        int begun = WriteLogging.periods();
        if (periods == begun) {
            return true;
        }
        boolean over = !WriteLogging.isOn();
        // A write that has asked the same just before may not be logged yet.
        awaitWrites();
        CommitLogPosition position = CommitLog.instance.getCurrentPosition();
        awaitWrites();
        for (var memtable : cfs.getTracker().getView().getAllMemtables()) {
            if (StoredMemtable.storedTableOf(memtable) != storedTable) {
                return false;
            }
        }
        storedTable.sync();
        record(cfs, position);
        if (over) {
            periods = begun;
        }
        return true;
    }

    /** Waits until the writes have ended that have begun: they are logged, where they are at all, and in memtables. */
    private static void awaitWrites() {
        OpOrder.Barrier begun = Keyspace.writeOrder.newBarrier();
        begun.issue();
        begun.await();
    }

    /** Notes it where Cassandra notes the position of a truncate, with the time of the last one, which does not change. */
    private static void record(ColumnFamilyStore cfs, CommitLogPosition position) {
        // Held by truncates while they do the same.
        synchronized (SystemKeyspace.class) {
            CommitLogPosition truncated = SystemKeyspace.getTruncatedPosition(cfs.metadata.id);
            if (truncated == null || truncated.compareTo(position) < 0) {
                SystemKeyspace.saveTruncationRecord(cfs, SystemKeyspace.getTruncatedAt(cfs.metadata.id), position);
            }
        }
    }
}
