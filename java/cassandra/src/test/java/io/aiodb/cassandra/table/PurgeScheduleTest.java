package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** When a pass is due: it reads everything, so of a large table only after much was written. */
class PurgeScheduleTest {
    private static final long MIB = 1 << 20;

    private final PurgeSchedule purges = new PurgeSchedule();
    private final AtomicInteger asked = new AtomicInteger();

    @Test
    void theFirstPassWaitsForHalfOfWhatThereIs() {
        assertFalse(isDue(1000 * MIB));
        assertEquals(0, asked.get(), "little was written, whatever there is");
        purges.wrote(257 * MIB, false, false);
        assertFalse(isDue(1000 * MIB));
        purges.wrote(240 * MIB, false, false);
        assertFalse(isDue(1000 * MIB));
        purges.wrote(10 * MIB, false, false);
        assertTrue(isDue(1000 * MIB));
        assertEquals(1, asked.get(), "the size is known then");
    }

    @Test
    void aLaterPassWaitsForHalfOfWhatTheLastOneRead() {
        purges.wrote(257 * MIB, false, false);
        assertTrue(isDue(MIB));
        purges.end(800 * MIB);
        purges.wrote(390 * MIB, false, false);
        assertFalse(isDue(MIB));
        purges.wrote(20 * MIB, false, false);
        assertTrue(isDue(MIB));
    }

    private boolean isDue(long size) {
        return purges.begin(null, 0, () -> {
            asked.incrementAndGet();
            return size;
        });
    }
}
