package io.aiodb.store.redis;

import io.aiodb.store.Keys;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * What rows were before they were changed, kept in memory while a {@link View} needs it: Redis has no snapshots, but every
 * change to a store comes from this process. The server numbers all changes; a view is of the number that was the last when
 * it was taken, and takes back what came later.
 *
 * <p>A history belongs to one session with the server. When that ends, all views do, since what the last changes did is not
 * known.
 */
final class RedisHistory {
    /** How long a reader waits before it looks again whether its session has ended. */
    private static final long WAIT_MILLIS = 100;

    /** What a row was before a change; the value is null where there was none. */
    private record Before(long sequence, byte[] value) {}

    private record Place(String generation, ByteBuffer key) {}

    private final long maxBytes;

    /** Writers hold the read half from before a change is sent until its answer was recorded. */
    private final ReadWriteLock writing = new ReentrantReadWriteLock();

    /** Of each table, by its generation; each row's in the order of their numbers. */
    private final Map<String, NavigableMap<ByteBuffer, ArrayDeque<Before>>> rows = new HashMap<>();

    private final NavigableMap<Long, List<Place>> bySequence = new TreeMap<>();
    private final Set<View> views = new HashSet<>();

    /** The numbers up to this one are recorded, and of the later ones those in the set. */
    private long recorded;

    private final Set<Long> recordedLater = new HashSet<>();
    private long bytes;
    private String ended;

    RedisHistory(long maxBytes, long sequence) {
        this.maxBytes = maxBytes;
        this.recorded = sequence;
    }

    /** The store at one moment. To be closed. */
    final class View implements AutoCloseable {
        private long sequence;
        private String why;

        private View(long sequence) {
            this.sequence = sequence;
        }

        /** The number of the last change that it sees. */
        long sequence() {
            return sequence;
        }

        /** Says which change was the last when the view was taken; until then it keeps more than it needs. */
        void isAt(long number) {
            synchronized (RedisHistory.this) {
                sequence = number;
                forget();
            }
        }

        /**
         * Turns rows as they are at a later number into those of this view.
         *
         * @param found changed by this call
         * @param from the lowest key that was looked for, included; null for all
         * @param to the highest, included; null for all
         */
        void takeBack(String generation, long number, NavigableMap<ByteBuffer, byte[]> found, ByteBuffer from, ByteBuffer to) {
            synchronized (RedisHistory.this) {
                await(number);
                NavigableMap<ByteBuffer, ArrayDeque<Before>> changed = rows.get(generation);
                boolean isEmpty = from != null && to != null && Keys.compare(from, to) > 0;
                if (changed == null || isEmpty) {
                    return;
                }
                if (from != null) {
                    changed = changed.tailMap(from, true);
                }
                if (to != null) {
                    changed = changed.headMap(to, true);
                }
                changed.forEach((key, befores) -> {
                    for (Before before : befores) {
                        if (before.sequence() > number) {
                            // Of what came later than the rows, an earlier part may not be recorded yet.
                            return;
                        }
                        if (before.sequence() > sequence) {
                            if (before.value() == null) {
                                found.remove(key);
                            } else {
                                found.put(key, before.value());
                            }
                            return;
                        }
                    }
                });
            }
        }

        private void await(long number) {
            boolean interrupted = false;
            while (why == null && recorded < number) {
                try {
                    RedisHistory.this.wait(WAIT_MILLIS);
                } catch (InterruptedException interruption) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            check();
        }

        /** Refuses to go on when the view was ended. */
        void check() {
            synchronized (RedisHistory.this) {
                if (why != null) {
                    throw new StoreException.SnapshotEnded(why);
                }
            }
        }

        @Override
        public void close() {
            synchronized (RedisHistory.this) {
                if (views.remove(this)) {
                    forget();
                }
            }
        }
    }

    /** To be held in shared mode from before a change is sent until {@link #record} has returned. */
    ReadWriteLock writing() {
        return writing;
    }

    /** Whether the next change is to say what was there before. Asked with {@link #writing} held. */
    synchronized boolean isWanted() {
        return !views.isEmpty();
    }

    long maxBytes() {
        return maxBytes;
    }

    /** The number up to which all changes were recorded. */
    synchronized long recorded() {
        return recorded;
    }

    /** The number that no open view needs anything before. */
    synchronized long oldest() {
        return views.stream().mapToLong(View::sequence).min().orElse(Long.MAX_VALUE);
    }

    /** A view that sees no less than what is recorded now. Its number is to be said by {@link View#isAt}. */
    View open() {
        synchronized (this) {
            if (!views.isEmpty()) {
                return add();
            }
        }
        // Changes under way do not say what was there before.
        writing.writeLock().lock();
        try {
            synchronized (this) {
                return add();
            }
        } finally {
            writing.writeLock().unlock();
        }
    }

    private View add() {
        if (ended != null) {
            throw new StoreException.SnapshotEnded(ended);
        }
        View view = new View(recorded);
        views.add(view);
        return view;
    }

    /** A row as a change found it. */
    record Row(String generation, byte[] key, byte[] value) {}

    /**
     * Takes note of a change.
     *
     * @param found what it found; null if that is not known
     */
    synchronized void record(long sequence, List<Row> found) {
        if (found == null) {
            endAll("more was changed at once than history_bytes has room for");
        } else if (!views.isEmpty()) {
            found.forEach(row -> keep(sequence, row));
            while (bytes > maxBytes && !views.isEmpty()) {
                View oldest = views.stream().min(Comparator.comparingLong(View::sequence)).orElseThrow();
                end(oldest, "more was changed since it was taken than history_bytes has room for");
                forget();
            }
        }
        recordedLater.add(sequence);
        while (recordedLater.remove(recorded + 1)) {
            recorded++;
        }
        notifyAll();
    }

    /** Ends all views, and those that are asked for later. */
    synchronized void end(String why) {
        ended = why;
        endAll(why);
        notifyAll();
    }

    private void endAll(String why) {
        new ArrayList<>(views).forEach(view -> end(view, why));
        forget();
    }

    private void end(View view, String why) {
        view.why = why;
        views.remove(view);
    }

    private void keep(long sequence, Row row) {
        ByteBuffer key = ByteBuffer.wrap(row.key());
        ArrayDeque<Before> befores = rows
                .computeIfAbsent(row.generation(), table -> new TreeMap<>(Keys::compare))
                .computeIfAbsent(key, absent -> new ArrayDeque<>());
        insert(befores, new Before(sequence, row.value()));
        bySequence.computeIfAbsent(sequence, none -> new ArrayList<>()).add(new Place(row.generation(), key));
        bytes += size(key, row.value());
    }

    /** Answers of several threads come to be recorded in any order, mostly in that of their numbers. */
    private static void insert(ArrayDeque<Before> befores, Before one) {
        ArrayDeque<Before> later = new ArrayDeque<>();
        while (!befores.isEmpty() && befores.getLast().sequence() > one.sequence()) {
            later.addFirst(befores.removeLast());
        }
        befores.addLast(one);
        befores.addAll(later);
    }

    /** Gives up what no view needs. */
    private void forget() {
        long oldest = views.stream().mapToLong(View::sequence).min().orElse(Long.MAX_VALUE);
        NavigableMap<Long, List<Place>> unused = bySequence.headMap(oldest, true);
        for (List<Place> places : unused.values()) {
            for (Place place : places) {
                NavigableMap<ByteBuffer, ArrayDeque<Before>> table = rows.get(place.generation());
                ArrayDeque<Before> befores = table.get(place.key());
                bytes -= size(place.key(), befores.removeFirst().value());
                if (befores.isEmpty()) {
                    table.remove(place.key());
                    if (table.isEmpty()) {
                        rows.remove(place.generation());
                    }
                }
            }
        }
        unused.clear();
    }

    private static int size(ByteBuffer key, byte[] value) {
        return key.remaining() + (value == null ? 0 : value.length);
    }
}
