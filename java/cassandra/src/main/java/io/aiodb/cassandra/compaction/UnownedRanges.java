package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.PartitionLocks;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.table.UnfinishedUpdates;
import io.aiodb.store.Durability;
import io.aiodb.store.Table;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;

/** Removes rows that are other nodes' from a stored table, at once for any number of them. */
public final class UnownedRanges {
    /** The node's view of the ring at the moment of the question, for one keyspace. */
    public interface Ring {
        /** Whether ranges are about to become the node's: rows of theirs are streamed and written to it already. */
        boolean isPending();

        /** The ranges of which the node is a replica. */
        Set<Range<Token>> owned();
    }

    private UnownedRanges() {}

    /**
     * Removes all of them. Stops, and returns false, where ranges are about to become the node's, or have become so since.
     *
     * <p>Cassandra's own cleanup ({@code CompactionManager.performCleanup}) takes rows of the SSTables that there were when
     * it looked at the ring. A store has rows that came later, too: so nobody writes while the ring is asked and the rows of
     * a range go. Rows that are written after that stay.
     */
    public static boolean remove(StoredTable storedTable, IPartitioner partitioner, Ring ring) {
        Token least = partitioner.getMinimumToken();
        PartitionLocks locks = storedTable.open().locks();
        for (Range<Token> range : new Range<>(least, least).subtractAll(ring.owned())) {
            AtomicBoolean removed = new AtomicBoolean();
            locks.replaceAll(() -> {
                // In this order: a range that is not pending any more is owned.
                if (!ring.isPending() && !range.intersects(ring.owned())) {
                    remove(range, storedTable);
                    removed.set(true);
                }
            });
            if (!removed.get()) {
                return false;
            }
        }
        return true;
    }

    private static void remove(Range<Token> range, StoredTable storedTable) {
        UnfinishedUpdates unfinished = storedTable.unfinished();
        for (UnfinishedUpdates.Update update : unfinished.all()) {
            if (range.contains(update.partition().getToken())) {
                // Completed later, it would be there without the deletions that hide it.
                storedTable.open().catalog().forgetUpdate(update.place());
                unfinished.remove(update);
            }
        }
        range.unwrap().forEach(part -> remove(part, storedTable.tableOrNull()));
    }

    private static void remove(Range<Token> range, Table table) {
        Range<PartitionPosition> rows = Range.makeRowRange(range);
        table.deleteRange(bound(rows.left), bound(rows.right), Durability.INTERVAL);
    }

    /** The first position of all also stands for the end. */
    private static byte[] bound(PartitionPosition position) {
        return position.isMinimum() ? new byte[0] : StoredKey.bound(position.asComparableBound(true));
    }
}
