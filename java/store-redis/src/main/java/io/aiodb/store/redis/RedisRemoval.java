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

    RedisRemoval(RedisStore store) {
        this.store = store;
    }

    /** Takes note of when a generation was given up. */
    void note(String generation, long sequence) {
        givenUp.put(generation, sequence);
    }

    /** Begins, unless that is under way. */
    void begin() {
        if (waiting.compareAndSet(false, true)) {
            try {
                thread.execute(this::remove);
            } catch (RejectedExecutionException closed) {
                // The store is found as it is when it is opened again.
            }
        }
    }

    private void remove() {
        waiting.set(false);
        try {
            for (byte[] generation : store.call(session -> session.await(session.commands().smembers(store.removedKey())))) {
                while (removeSome(generation)) {
                    // The next thousand.
                }
            }
        } catch (StoreException later) {
            // What is left is found again with the next table that is emptied or dropped, or when the store is opened.
        }
    }

    /** Whether there are more. */
    private boolean removeSome(byte[] generation) {
        return store.call(session -> {
            long sequence = givenUp.getOrDefault(RedisSession.text(generation), 0L);
            if (session.history().oldest() < sequence) {
                return false;
            }
            byte[] more = session.runForValue(RedisScript.REMOVE, session.marker(), generation);
            return more != null && more.length > 0;
        });
    }

    @Override
    public void close() {
        thread.shutdown();
    }
}
