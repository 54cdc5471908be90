package io.aiodb.store;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** When what was left on a server is removed. */
final class RemovalTest {
    private static final int GIVE_UP_SECONDS = 20;

    /** As when a snapshot is closed that the run under way has found to need some rows. */
    @Test
    void whatIsBegunDuringARunThatLeavesSomethingIsDoneAfterIt() {
        CountDownLatch looked = new CountDownLatch(1);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch again = new CountDownLatch(1);
        AtomicInteger runs = new AtomicInteger();
        try (Removal removal = new Removal("removal-test") {
            @Override
            protected boolean remove() {
                if (runs.incrementAndGet() > 1) {
                    again.countDown();
                    return true;
                }
                looked.countDown();
                waitFor(begun);
                return false;
            }
        }) {
            removal.begin();
            waitFor(looked);
            removal.begin();
            begun.countDown();
            waitFor(again);
        }
    }

    private static void waitFor(CountDownLatch latch) {
        try {
            assertTrue(latch.await(GIVE_UP_SECONDS, TimeUnit.SECONDS), "it never happens");
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }
}
