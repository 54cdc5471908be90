package io.aiodb.store.redis;

import io.aiodb.store.Removal;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Deletes the rows of generations that were given up, a thousand at a time. */
final class RedisRemoval extends Removal {
    private final RedisStore store;

    /** The changes by which generations were given up; of those from before this process it is not known, nor needed. */
    private final Map<String, Long> givenUp = new ConcurrentHashMap<>();

    RedisRemoval(RedisStore store) {
        super("redis-remove");
        this.store = store;
    }

    /** Takes note of when a generation was given up. */
    void note(String generation, long sequence) {
        givenUp.put(generation, sequence);
        note();
    }

    @Override
    protected boolean remove() {
        boolean all = true;
        for (byte[] generation : store.call(session -> session.await(session.commands().smembers(store.removedKey())))) {
            Step step = Step.MORE;
            while (step == Step.MORE) {
                step = removeSome(generation);
            }
            all &= step == Step.DONE;
        }
        return all;
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
}
