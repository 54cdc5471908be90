package io.aiodb.store;

import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/**
 * Keeps a native library from being called with what it has freed, for stores whose library does not check that: calls
 * run side by side, closing waits for them, and what comes later is refused.
 */
public final class Lifecycle {
    private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
    private boolean closed;

    /** Runs a call, unless the store was closed. */
    public <T> T call(Supplier<T> body) {
        lock.readLock().lock();
        try {
            if (closed) {
                throw new StoreException.Closed("the store was closed");
            }
            return body.get();
        } finally {
            lock.readLock().unlock();
        }
    }

    /** Runs a call without a result, unless the store was closed. */
    public void run(Runnable body) {
        call(() -> {
            body.run();
            return null;
        });
    }

    /** Runs a call while no other one runs, unless the store was closed. */
    public <T> T callAlone(Supplier<T> body) {
        lock.writeLock().lock();
        try {
            if (closed) {
                throw new StoreException.Closed("the store was closed");
            }
            return body.get();
        } finally {
            lock.writeLock().unlock();
        }
    }

    /** Runs something that releases native memory: nothing happens after the store was closed, which has released it. */
    public void release(Runnable body) {
        lock.readLock().lock();
        try {
            if (!closed) {
                body.run();
            }
        } finally {
            lock.readLock().unlock();
        }
    }

    /** Closes once, when no call is under way. */
    public void close(Runnable body) {
        lock.writeLock().lock();
        try {
            if (!closed) {
                body.run();
            }
        } finally {
            closed = true;
            lock.writeLock().unlock();
        }
    }
}
