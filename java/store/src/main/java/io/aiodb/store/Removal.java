package io.aiodb.store;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Removes the rows of tables that were emptied or dropped, in a thread of its own, once nobody reads them: for stores whose
 * rows lie on a server.
 */
public abstract class Removal implements AutoCloseable {
    private final ExecutorService thread;
    private final AtomicBoolean waiting = new AtomicBoolean();

    /** How often rows were left: at first, perhaps, by an earlier process. */
    private final AtomicLong noted = new AtomicLong(1);

    /** As of which of these times nothing is left. */
    private volatile long removed;

    protected Removal(String threadName) {
        thread = Executors.newSingleThreadExecutor(body -> {
            Thread made = new Thread(body, threadName);
            made.setDaemon(true);
            return made;
        });
    }

    /**
     * Removes what nobody reads.
     *
     * @return whether that was all; what is left is tried again when somebody calls {@link #begin}
     */
    protected abstract boolean remove();

    /** Takes note that there is something to remove. */
    public final void note() {
        noted.incrementAndGet();
    }

    /** Begins if there may be something to remove. A run under way is followed by another one. */
    public final void begin() {
        if (removed < noted.get() && waiting.compareAndSet(false, true)) {
            try {
                thread.execute(this::run);
            } catch (RejectedExecutionException closed) {
                // The store is found as it is when it is opened again.
            }
        }
    }

    private void run() {
        waiting.set(false);
        long upTo = noted.get();
        try {
            if (remove()) {
                removed = upTo;
            }
        } catch (StoreException later) {
            // It is still noted.
        }
    }

    @Override
    public final void close() {
        thread.shutdown();
    }
}
