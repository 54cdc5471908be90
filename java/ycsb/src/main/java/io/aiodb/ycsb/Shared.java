package io.aiodb.ycsb;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import site.ycsb.Status;

/**
 * What the threads of a run have together. YCSB makes a {@code DB} for each of its threads, does not say which is the last
 * to end, and exits with 0 whatever happened: so stores and sessions are opened once, closed when the process ends, and
 * failures are counted, shown and made the process's exit code.
 */
final class Shared {
    /** How many failures are shown; the others are counted. */
    private static final int MOST_SHOWN = 5;

    private static final Shared OF_THIS_PROCESS = new Shared();

    private final Map<Class<?>, AutoCloseable> opened = new HashMap<>();
    private final Deque<AutoCloseable> toClose = new ArrayDeque<>();
    private final AtomicLong failures = new AtomicLong();

    private Shared() {}

    static Shared ofThisProcess() {
        return OF_THIS_PROCESS;
    }

    /** Opens what all threads use. */
    interface Opener<T> {
        T open() throws Exception;
    }

    /** The one object of this class, opened by the thread that asks first. */
    synchronized <T extends AutoCloseable> T open(Class<T> kind, Opener<T> opener) throws Exception {
        if (!opened.containsKey(kind)) {
            T made = opener.open();
            opened.put(kind, made);
            toClose.push(made);
        }
        return kind.cast(opened.get(kind));
    }

    /** Counts an operation that failed, and shows the first few. */
    Status failed(String operation, String key, Exception failure) {
        if (failures.incrementAndGet() <= MOST_SHOWN) {
            System.err.println("ycsb: " + operation + " " + key + " failed: " + reason(failure));
        }
        return Status.ERROR;
    }

    /** Ends the process: without what could not be opened there is nothing to measure. */
    void refuse(String attempt, Exception failure) {
        failures.incrementAndGet();
        System.err.println("ycsb: cannot " + attempt + ": " + reason(failure));
        System.exit(Main.FAILED);
    }

    /** The number of operations that failed. */
    long failures() {
        return failures.get();
    }

    /** Closes what was opened, the last first. */
    synchronized void close() {
        while (!toClose.isEmpty()) {
            try {
                toClose.pop().close();
            } catch (Exception failure) {
                failed("the end of", "the run", failure);
            }
        }
        opened.clear();
    }

    /** Run when the process ends: what was measured while operations failed is no result. */
    void end() {
        close();
        if (failures() > 0) {
            System.err.println("ycsb: failed: " + failures() + "; what was measured does not count");
            System.err.flush();
            Runtime.getRuntime().halt(Main.FAILED);
        }
    }

    private static String reason(Exception failure) {
        return failure.getMessage() == null ? failure.toString() : failure.getMessage();
    }
}
