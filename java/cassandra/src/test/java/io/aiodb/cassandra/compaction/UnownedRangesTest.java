package io.aiodb.cassandra.compaction;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.OneStoredTable;
import io.aiodb.cassandra.fixture.Schema;
import io.aiodb.cassandra.read.PartitionReader;
import io.aiodb.cassandra.write.LargeUpdate;
import io.aiodb.cassandra.write.UpdateWriter;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.util.Set;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.junit.jupiter.api.Test;

class UnownedRangesTest extends OneStoredTable {
    private static final int PARTITIONS = 100;
    private static final Murmur3Partitioner PARTITIONER = Murmur3Partitioner.instance;
    private static final Token LEAST = PARTITIONER.getMinimumToken();

    /** Also what has no beginning. */
    private static final Set<Range<Token>> ALL = Set.of(new Range<>(LEAST, LEAST));

    /** A quarter of the ring, with the place where it closes in the rest. */
    private static final Set<Range<Token>> QUARTER = Set.of(new Range<>(token(0), token(Long.MAX_VALUE / 2)));

    /** The ring as a test has it. */
    private static class FixedRing implements UnownedRanges.Ring {
        boolean pending;
        Set<Range<Token>> owned;

        FixedRing(Set<Range<Token>> owned) {
            this.owned = owned;
        }

        @Override
        public boolean isPending() {
            return pending;
        }

        @Override
        public Set<Range<Token>> owned() {
            return owned;
        }
    }

    @Test
    void whatTheNodeHasNotGoes() {
        fill();
        assertTrue(remove(new FixedRing(QUARTER)));
        Range<Token> quarter = QUARTER.iterator().next();
        int left = 0;
        for (int key = 0; key < PARTITIONS; key++) {
            boolean owned = quarter.contains(Schema.key(key).getToken());
            assertEquals(owned, exists(key), "partition " + key);
            left += owned ? 1 : 0;
        }
        assertTrue(left > 0 && left < PARTITIONS, left + " of all partitions are owned");
        assertTrue(remove(new FixedRing(Set.of())));
        assertEquals(0, partitions());
    }

    /** They are streamed and written to already. */
    @Test
    void nothingGoesWhileRangesArePending() {
        fill();
        FixedRing ring = new FixedRing(QUARTER);
        ring.pending = true;
        assertFalse(remove(ring));
        assertEquals(PARTITIONS, partitions());
    }

    @Test
    void whatBecomesPendingMeanwhileStays() {
        fill();
        boolean removed = remove(new FixedRing(Set.of()) {
            @Override
            public Set<Range<Token>> owned() {
                pending = true;
                return super.owned();
            }
        });
        assertFalse(removed);
        assertEquals(PARTITIONS, partitions());
    }

    @Test
    void whatBecomesTheNodesMeanwhileStays() {
        fill();
        boolean removed = remove(new FixedRing(Set.of()) {
            @Override
            public Set<Range<Token>> owned() {
                Set<Range<Token>> before = super.owned();
                owned = ALL;
                return before;
            }
        });
        assertFalse(removed);
        assertEquals(PARTITIONS, partitions());
    }

    /** The ring may have changed before the write, and after the cleanup has asked. */
    @Test
    void aWriteThatComesAfterTheQuestionStays() throws InterruptedException {
        fill();
        Thread writer = new Thread(() -> write(PARTITIONS, 1));
        remove(new FixedRing(Set.of()) {
            private boolean asked;

            @Override
            public Set<Range<Token>> owned() {
                if (asked && writer.getState() == Thread.State.NEW) {
                    writer.start();
                    while (writer.getState() == Thread.State.RUNNABLE) {
                        Thread.onSpinWait();
                    }
                }
                asked = true;
                return super.owned();
            }
        });
        assertTrue(writer.getState() != Thread.State.NEW, "the ring was asked once only");
        writer.join();
        assertEquals(1, partitions());
        assertTrue(exists(PARTITIONS));
    }

    /** The rest of it would come back to rows whose deletion is gone. */
    @Test
    void anUpdateThatIsThereInPartGoesToo() {
        PartitionUpdate.SimpleBuilder large = PartitionUpdate.simpleBuilder(table, 1).timestamp(1);
        for (int row = 0; row < 40; row++) {
            large.row("a", row).add("v", "v".repeat(60_000));
        }
        write(2, 1);
        store.refuseBatchesAfter(0);
        assertThrows(
                StoreException.Full.class, () -> UpdateWriter.write(large.build(), storedTable, Durability.INTERVAL));
        store.refuseBatchesAfter(Integer.MAX_VALUE);
        assertTrue(remove(new FixedRing(Set.of())));
        LargeUpdate.finish(storedTable);
        assertFalse(exists(1));
        restart();
        assertFalse(exists(1));
    }

    private static Token token(long number) {
        return new Murmur3Partitioner.LongToken(number);
    }

    private boolean remove(UnownedRanges.Ring ring) {
        return UnownedRanges.remove(storedTable, PARTITIONER, ring);
    }

    private void fill() {
        for (int key = 0; key < PARTITIONS; key++) {
            write(key, 1);
        }
    }

    private void write(int key, long time) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key);
        update.timestamp(time).row("a", 1).add("v", "x");
        UpdateWriter.write(update.build(), storedTable, Durability.INTERVAL);
    }

    private boolean exists(int key) {
        return PartitionReader.exists(storedTable, Schema.key(key));
    }

    private int partitions() {
        int partitions = 0;
        for (int key = 0; key <= PARTITIONS; key++) {
            partitions += exists(key) ? 1 : 0;
        }
        return partitions;
    }
}
