package io.aiodb.store.redis;

import io.aiodb.store.StoreException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;

/** Deletes the rows of tables that were emptied or dropped, in a thread of its own, a thousand at a time. */
final class RedisRemoval implements AutoCloseable {
    private final RedisStore store;

    private final ExecutorService thread = Executors.newSingleThreadExecutor(body -> {
        Thread made = new Thread(body, "redis-remove");
        made.setDaemon(true);
        return made;
    });

    /** The changes by which generations were given up; of those from before this process it is not known, nor needed. */
    private final Map<String, Long> givenUp = new ConcurrentHashMap<>();

    private final AtomicBoolean waiting = new AtomicBoolean();

    /** Whether there may be rows to delete: at first those that an earlier process has left. */
    private volatile boolean wanted = true;

    RedisRemoval(RedisStore store) {
        this.store = store;
    }

    /** Takes note of when a generation was given up. */
    void note(String generation, long sequence) {
        givenUp.put(generation, sequence);
        wanted = true;
    }

    /** Begins, unless that is under way. */
    void begin() {
        if (wanted && waiting.compareAndSet(false, true)) {
            try {
                thread.execute(this::remove);
            } catch (RejectedExecutionException closed) {
                // The store is found as it is when it is opened again.
            }
        }
    }

    private void remove() {
        waiting.set(false);
        wanted = false;
        try {
            for (byte[] generation : store.call(session -> session.await(session.commands().smembers(store.removedKey())))) {
                Step step = Step.MORE;
                while (step == Step.MORE) {
                    step = removeSome(generation);
                }
                wanted |= step == Step.LATER;
            }
        } catch (StoreException later) {
            wanted = true;
        }
    }

    /** What is left of a generation: nothing, some rows, or rows that a snapshot needs. */
    private enum Step {
        DONE,
        MORE,
        LATER
    }

    private Step removeSome(byte[] generation) {
        return store.call(session -> {
            long sequence = givenUp.getOrDefault(RedisSession.text(generation), 0L);
            if (session.history().oldest() < sequence) {
                return Step.LATER;
            }
            byte[] more = session.runForValue(RedisScript.REMOVE, session.marker(), generation);
            if (more != null && more.length > 0) {
                return Step.MORE;
            }
            givenUp.remove(RedisSession.text(generation));
            return Step.DONE;
        });
    }

    @Override
    public void close() {
        thread.shutdown();
    }
}
