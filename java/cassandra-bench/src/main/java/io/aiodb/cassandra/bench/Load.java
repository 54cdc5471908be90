package io.aiodb.cassandra.bench;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongFunction;
import java.util.stream.IntStream;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/**
 * Requests of which so many are under way at once, each of which is followed by the next as soon as it is answered; or which
 * begin so many a second whether the earlier ones are answered or not, as those of many users do. Then each one's time is
 * counted from when it was to begin.
 */
final class Load {
    /** Longer than any request may take: the driver gives up before. */
    private static final long MAX_NANOS = TimeUnit.MINUTES.toNanos(5);

    private static final int DIGITS = 3;

    /** How many may wait for their answers where they begin at a rate. */
    private static final int MAX_BEHIND = 1024;

    /**
     * What came of it.
     *
     * @param seconds that all took together
     * @param nanos that each took
     * @param windows how many were answered in each second, window by window
     */
    record Result(double seconds, Histogram nanos, List<Double> windows) {
        double perSecond() {
            return nanos.getTotalCount() / seconds;
        }

        double percentileMicros(double percentile) {
            return nanos.getValueAtPercentile(percentile) / 1e3;
        }
    }

    private final CqlSession session;
    private final LongFunction<BoundStatement> requests;
    private final int inFlight;
    private final long windowNanos;
    private final Semaphore free;
    private final ConcurrentHistogram nanos = new ConcurrentHistogram(MAX_NANOS, DIGITS);
    private final AtomicLongArray answered;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private Load(CqlSession session, LongFunction<BoundStatement> requests, int inFlight, long windowNanos, int windows) {
        this.session = session;
        this.requests = requests;
        this.inFlight = inFlight;
        this.windowNanos = windowNanos;
        this.free = new Semaphore(inFlight);
        this.answered = new AtomicLongArray(windows);
    }

    /** Runs for a time. {@code requests} gets the number of each. */
    static Result forSeconds(
            CqlSession session, LongFunction<BoundStatement> requests, Settings settings, int seconds) {
        boolean paced = settings.perSecond() > 0;
        double gapNanos = paced ? 1e9 / settings.perSecond() : 0;
        int windows = settings.windowSeconds() == 0 ? 0 : seconds / settings.windowSeconds();
        Load load = new Load(
                session,
                requests,
                paced ? MAX_BEHIND : settings.inFlight(),
                TimeUnit.SECONDS.toNanos(settings.windowSeconds()),
                windows);
        return load.run(gapNanos, TimeUnit.SECONDS.toNanos(seconds), Long.MAX_VALUE);
    }

    /** Runs so many requests. */
    static Result times(CqlSession session, LongFunction<BoundStatement> requests, int inFlight, long count) {
        return new Load(session, requests, inFlight, 0, 0).run(0, Long.MAX_VALUE, count);
    }

    private Result run(double gapNanos, long lengthNanos, long count) {
        long began = System.nanoTime();
        for (long number = 0; number < count && failure.get() == null; number++) {
            long due = (long) (number * gapNanos);
            await(began, due);
            free.acquireUninterruptibly();
            long now = System.nanoTime() - began;
            if (Math.max(now, due) >= lengthNanos) {
                free.release();
                break;
            }
            ask(number, began, began + (gapNanos == 0 ? now : due));
        }
        free.acquireUninterruptibly(inFlight);
        double seconds = (System.nanoTime() - began) / 1e9;
        if (failure.get() != null) {
            throw new IllegalStateException("a request failed, so the figures would mean nothing", failure.get());
        }
        return new Result(seconds, nanos.copy(), windows());
    }

    private List<Double> windows() {
        return IntStream.range(0, answered.length())
                .mapToObj(window -> answered.get(window) * 1e9 / windowNanos)
                .toList();
    }

    private static void await(long began, long due) {
        for (long left = began + due - System.nanoTime(); left > 0; left = began + due - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    private void ask(long number, long began, long since) {
        session.executeAsync(requests.apply(number)).whenComplete((answer, thrown) -> {
            long now = System.nanoTime();
            nanos.recordValue(now - since);
            count(now - began);
            if (thrown != null) {
                failure.compareAndSet(null, thrown);
            } else if (answer.getColumnDefinitions().size() > 0 && answer.one() == null) {
                failure.compareAndSet(null, new IllegalStateException("a row is missing"));
            }
            free.release();
        });
    }

    /** A request that is answered after the last window is in none. */
    private void count(long nanosFromBegin) {
        if (answered.length() > 0 && nanosFromBegin / windowNanos < answered.length()) {
            answered.incrementAndGet((int) (nanosFromBegin / windowNanos));
        }
    }
}
