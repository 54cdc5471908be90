package io.aiodb.cassandra.table;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.cassandra.db.DecoratedKey;

/** The large updates of a stored table of which, since the store was full, only some parts are there. */
public final class UnfinishedUpdates {
    /**
     * One of them.
     *
     * @param place where the catalog has it as a whole
     * @param partition which it is of
     * @param minTimestamp not later than any of its timestamps
     */
    public record Update(byte[] place, DecoratedKey partition, long minTimestamp) {
        /** The stripe of its partition. */
        public int stripe() {
            return PartitionLocks.of(partition);
        }
    }

    private final List<Update> updates = new CopyOnWriteArrayList<>();

    UnfinishedUpdates() {}

    /** Takes note of one. The caller holds its stripe alone. */
    public void add(Update update) {
        updates.add(update);
    }

    /** Forgets one, which is there as a whole. The caller holds its stripe alone. */
    public void remove(Update update) {
        updates.remove(update);
    }

    /** All of them. */
    public List<Update> all() {
        return List.copyOf(updates);
    }

    /** Whether there is one in a stripe. It stays so while the caller holds the stripe alone. */
    public boolean isIn(int stripe) {
        return updates.stream().anyMatch(update -> update.stripe() == stripe);
    }
}
