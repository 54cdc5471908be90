package io.aiodb.cassandra.table;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Supplier;

/**
 * Tells readers of several keys of a partition whether its writers were at work meanwhile: a writer counts before and after
 * its batch, a reader compares. Writers do not exclude each other, since they only append; a thread that replaces entries
 * excludes them. Partitions share stripes, which at worst makes one wait or read twice.
 */
public final class PartitionLocks {
    /** No reading can be judged: writers are at work. */
    public static final long BUSY = -1;

    /** How many there are. */
    static final int STRIPES = 4096;

    /** Longs of a cache line, so that writers of two stripes do not disturb each other. */
    private static final int SPREAD = 8;

    private final AtomicLongArray begun = new AtomicLongArray(STRIPES * SPREAD);
    private final AtomicLongArray ended = new AtomicLongArray(STRIPES * SPREAD);
    /** Held alone while an update is there in part. */
    private final StampedLock parts = new StampedLock();

    private final StampedLock[] locks = new StampedLock[STRIPES];

    PartitionLocks() {
        for (int i = 0; i < STRIPES; i++) {
            locks[i] = new StampedLock();
        }
    }

    /** The stripe of a partition. */
    public static int of(Object partition) {
        int hash = partition.hashCode();
        return (hash ^ hash >>> 16) & STRIPES - 1;
    }

    /** Runs a write that only appends. */
    public void write(int stripe, Runnable write) {
        long stamp = locks[stripe].readLock();
        try {
            count(stripe, write);
        } finally {
            locks[stripe].unlockRead(stamp);
        }
    }

    /** Writes an update in parts: nobody else writes to its stripe, and nobody begins to read any partition. */
    public void writeInParts(int stripe, Runnable write) {
        long stamp = parts.writeLock();
        try {
            replace(stripe, write);
        } finally {
            parts.unlockWrite(stamp);
        }
    }

    /** Opens a scan or snapshot at a moment when no update is there in part. One that is opened in vain is closed. */
    public <T extends AutoCloseable> T open(Supplier<T> open) {
        long stamp = parts.tryOptimisticRead();
        if (stamp != 0) {
            T opened = open.get();
            if (parts.validate(stamp)) {
                return opened;
            }
            close(opened);
        }
        stamp = parts.readLock();
        try {
            return open.get();
        } finally {
            parts.unlockRead(stamp);
        }
    }

    private static void close(AutoCloseable opened) {
        try {
            if (opened != null) {
                opened.close();
            }
        } catch (RuntimeException failure) {
            throw failure;
        } catch (Exception impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Reads entries of a stripe and replaces them, while nobody writes to it. */
    public void replace(int stripe, Runnable replace) {
        long stamp = locks[stripe].writeLock();
        try {
            count(stripe, replace);
        } finally {
            locks[stripe].unlockWrite(stamp);
        }
    }

    /** Replaces entries of any stripes, while nobody writes to any of them. The caller holds none. */
    public void replaceAll(Runnable replace) {
        long[] stamps = new long[STRIPES];
        for (int stripe = 0; stripe < STRIPES; stripe++) {
            stamps[stripe] = locks[stripe].writeLock();
            begun.incrementAndGet(stripe * SPREAD);
        }
        try {
            replace.run();
        } finally {
            for (int stripe = 0; stripe < STRIPES; stripe++) {
                ended.incrementAndGet(stripe * SPREAD);
                locks[stripe].unlockWrite(stamps[stripe]);
            }
        }
    }

    /** Waits until every write that is under way, of any stripe, has ended. */
    void awaitWriters() {
        for (StampedLock lock : locks) {
            lock.unlockWrite(lock.writeLock());
        }
    }

    private void count(int stripe, Runnable write) {
        begun.incrementAndGet(stripe * SPREAD);
        try {
            write.run();
        } finally {
            ended.incrementAndGet(stripe * SPREAD);
        }
    }

    /** A count for {@link #isUnchanged}, or {@link #BUSY}. */
    public long readBegins(int stripe) {
        // In this order: a writer that begins in between is then seen as at work.
        long writesEnded = ended.get(stripe * SPREAD);
        return begun.get(stripe * SPREAD) == writesEnded ? writesEnded : BUSY;
    }

    /** Whether no writer was at work since. */
    public boolean isUnchanged(int stripe, long readBegan) {
        return begun.get(stripe * SPREAD) == readBegan;
    }
}
