package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.cassandra.fixture.Schema;
import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableMetadata;
import org.junit.jupiter.api.Test;

/** Which of the updates that are written are looked at. */
class MergeQueueTest {
    private static final int UPDATES = 2000;

    /** A frame of this length has its update looked at for sure. */
    private static final int LONGEST = 1 << 20;

    private final TableMetadata table = Schema.table();

    /** So many, with a chance of one in millions that it is otherwise: 250 are expected of the long ones, 31 of the others. */
    @Test
    void updatesWithLongFramesAreLookedAtMoreOften() {
        assertTrue(looks(LONGEST / 8) > 150);
        assertTrue(looks(100) < 100);
        assertEquals(UPDATES, looks(LONGEST));
    }

    /** Of {@link #UPDATES} of them. */
    private int looks(int longest) {
        AtomicInteger looks = new AtomicInteger();
        MergeQueue queue = new MergeQueue(request -> looks.incrementAndGet());
        // So that this thread does all.
        queue.close();
        for (int i = 0; i < UPDATES; i++) {
            queue.wrote(update(1), longest, null);
        }
        return looks.get();
    }

    @Test
    void everyRowOfALongUpdateHasItsTurn() {
        int rows = 300;
        Set<ByteBuffer> seen = ConcurrentHashMap.newKeySet();
        MergeQueue queue = new MergeQueue(request -> {
            assertTrue(request.rows().size() < rows, "writers of the partition wait");
            request.rows().forEach(row -> seen.add(ByteBuffer.wrap(row)));
        });
        queue.close();
        PartitionUpdate update = update(rows);
        for (int i = 0; i < UPDATES; i++) {
            queue.wrote(update, LONGEST, null);
        }
        assertEquals(rows, seen.size());
    }

    /** What readers find is found again; a writer would go on before the queue. */
    @Test
    void whoWritesMoreThanTheQueueTakesMergesItself() throws InterruptedException {
        CountDownLatch writersAreDone = new CountDownLatch(1);
        Thread writer = Thread.currentThread();
        AtomicInteger own = new AtomicInteger();
        MergeQueue queue = new MergeQueue(request -> {
            if (Thread.currentThread() == writer) {
                own.incrementAndGet();
                return;
            }
            try {
                writersAreDone.await();
            } catch (InterruptedException closed) {
                Thread.currentThread().interrupt();
            }
        });
        try {
            for (int key = 0; key < UPDATES; key++) {
                PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, key).timestamp(1);
                update.row("a", 1).add("v", "x");
                queue.wrote(update.build(), LONGEST, null);
            }
            assertTrue(own.get() >= UPDATES / 4, own + " merged by the writer");
            assertTrue(own.get() < UPDATES, "the queue takes some");
        } finally {
            writersAreDone.countDown();
            queue.close();
        }
    }

    private PartitionUpdate update(int rows) {
        PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(table, 1).timestamp(1);
        for (int row = 0; row < rows; row++) {
            update.row("a", row).add("v", "x");
        }
        return update.build();
    }
}
