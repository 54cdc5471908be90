package io.aiodb.cassandra.bench;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.LongFunction;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** A closed loop: so many requests are always under way, each of which is followed by the next as soon as it is answered. */
final class Load {
    /** Longer than any request may take: the driver gives up before. */
    private static final long MAX_NANOS = TimeUnit.MINUTES.toNanos(5);

    private static final int DIGITS = 3;

    /** What came of it: how long all took together, and how long each did. */
    record Result(double seconds, Histogram nanos) {
        double perSecond() {
            return nanos.getTotalCount() / seconds;
        }

        double percentileMicros(double percentile) {
            return nanos.getValueAtPercentile(percentile) / 1e3;
        }
    }

    private final CqlSession session;
    private final LongFunction<BoundStatement> requests;
    private final long deadline;
    private final long count;
    private final ConcurrentHistogram nanos = new ConcurrentHistogram(MAX_NANOS, DIGITS);
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final CountDownLatch running;
    private final AtomicLong next = new AtomicLong();
    private final boolean rowWanted;

    private Load(
            CqlSession session, LongFunction<BoundStatement> requests, int inFlight, long nanos, long count, boolean rowWanted) {
        this.session = session;
        this.requests = requests;
        this.deadline = nanos == Long.MAX_VALUE ? Long.MAX_VALUE : System.nanoTime() + nanos;
        this.count = count;
        this.rowWanted = rowWanted;
        this.running = new CountDownLatch(inFlight);
    }

    /** Runs for a time. {@code requests} gets the number of each; where a row is wanted, an answer without one is a failure. */
    static Result forSeconds(
            CqlSession session, LongFunction<BoundStatement> requests, int inFlight, int seconds, boolean rowWanted) {
        return new Load(session, requests, inFlight, TimeUnit.SECONDS.toNanos(seconds), Long.MAX_VALUE, rowWanted)
                .run(inFlight);
    }

    /** Runs so many requests. */
    static Result times(CqlSession session, LongFunction<BoundStatement> requests, int inFlight, long count) {
        return new Load(session, requests, inFlight, Long.MAX_VALUE, count, false).run(inFlight);
    }

    private Result run(int inFlight) {
        long began = System.nanoTime();
        for (int request = 0; request < inFlight; request++) {
            next();
        }
        try {
            running.await();
        } catch (InterruptedException interruption) {
            throw new IllegalStateException("interrupted while requests were under way", interruption);
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        if (failure.get() != null) {
            throw new IllegalStateException("a request failed, so the figures would mean nothing", failure.get());
        }
        return new Result(seconds, nanos.copy());
    }

    private void next() {
        long number = next.getAndIncrement();
        long sent = System.nanoTime();
        if (number >= count || deadline != Long.MAX_VALUE && sent >= deadline || failure.get() != null) {
            running.countDown();
            return;
        }
        session.executeAsync(requests.apply(number)).whenComplete((answer, thrown) -> {
            nanos.recordValue(System.nanoTime() - sent);
            if (thrown != null) {
                failure.compareAndSet(null, thrown);
            } else if (rowWanted && isEmpty(answer)) {
                failure.compareAndSet(null, new IllegalStateException("a row is missing"));
            }
            next();
        });
    }

    private static boolean isEmpty(AsyncResultSet answer) {
        return answer.one() == null;
    }
}
