package io.aiodb.cassandra.table;

import io.aiodb.store.StoreException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether the server of a store answers, for the log: one line when it goes away, one a minute while it is, one when it is
 * back. Requests that it refuses are counted and not logged: clients and other nodes go on sending them all the time. Requests that
 * succeed have nothing to do with it: while the server is away a thread of its own looks for it.
 */
public final class ServerOutage {
    private static final Logger LOGGER = LoggerFactory.getLogger(ServerOutage.class);

    private static final long LOOK_MILLIS = 1000;

    /** Between two lines about the same outage. */
    static final long REPORT_NANOS = TimeUnit.MINUTES.toNanos(1);

    /** As long as {@link #REPORT_NANOS}. */
    private static final int MAX_GOOD_LOOKS = 60;

    /** The backend of Cassandra's own log. With another one Cassandra's lines of single requests stay. */
    private static final String LOGBACK = "ch.qos.logback.classic.LoggerContext";

    private final StoreConfiguration configuration;
    private final Runnable question;
    private final LongSupplier clock;

    /** Null while the server answers, as far as anybody knows. */
    private Thread watcher;

    private boolean closed;
    private String reason;
    private long beganNanos;
    private long saidNanos;
    private long endedNanos;
    private long reads;
    private long writes;
    private long said;

    /** Since the last look. */
    private boolean refused;

    /** Looks in a row that have found the server well, and how many of them make it so. */
    private int goodLooks;

    private int wantedLooks;

    /**
     * Of a store that answers. If it has a server, the log of this process drops single refusals from now on.
     *
     * @param question asks the server something; it throws a {@link StoreException} where there is no answer
     */
    ServerOutage(StoreConfiguration configuration, Runnable question) {
        this(configuration, question, System::nanoTime);
        if (configuration.isOnServer() && LoggerFactory.getILoggerFactory().getClass().getName().equals(LOGBACK)) {
            RefusalFilter.install();
        }
    }

    ServerOutage(StoreConfiguration configuration, Runnable question, LongSupplier clock) {
        this.configuration = configuration;
        this.question = question;
        this.clock = clock;
        this.endedNanos = clock.getAsLong() - REPORT_NANOS;
    }

    /** Counts a read that was refused. Returns the exception for Cassandra. */
    synchronized RuntimeException refusedRead(StoreException.Unavailable failure) {
        reads++;
        return refused(failure);
    }

    /** Counts a write that was refused. Returns the exception for Cassandra. */
    synchronized RuntimeException refusedWrite(StoreException.Unavailable failure) {
        writes++;
        return refused(failure);
    }

    private RuntimeException refused(StoreException.Unavailable failure) {
        noticed(failure);
        return new ServerAwayException(failure.getMessage());
    }

    /** Takes note that something else than a request has found no server. */
    public synchronized void noticed(StoreException.Unavailable failure) {
        reason = failure.getMessage();
        refused = true;
        if (watcher == null && !closed) {
            begin(failure);
        }
    }

    private void begin(StoreException.Unavailable failure) {
        long now = clock.getAsLong();
        // A server that comes and goes is believed to be back after a longer time each time.
        wantedLooks = now - endedNanos < REPORT_NANOS ? Math.min(2 * wantedLooks, MAX_GOOD_LOOKS) : 1;
        goodLooks = 0;
        beganNanos = now;
        saidNanos = now;
        said = 0;
        LOGGER.error(
                "The server of the {} store in {} is away: {}. Until it answers, reads and writes of the store's tables fail on"
                        + " this node; they are counted and not logged. Other replicas serve them, and other nodes keep hints of"
                        + " the writes that they coordinate, for max_hint_window; of those that this node coordinates there are"
                        + " no hints for it. See why the server does not answer, and start it; then run nodetool repair",
                configuration.store(), configuration.directory(), reason);
        LOGGER.debug("The server was found to be away here", failure);
        watcher = new Thread(this::watch, "aiodb-outage");
        watcher.setDaemon(true);
        watcher.start();
    }

    private void watch() {
        try {
            do {
                Thread.sleep(LOOK_MILLIS);
            } while (look());
        } catch (InterruptedException | StoreException.Closed over) {
            // The node ends.
        }
    }

    /**
     * Asks the server once, and says what there is to say.
     *
     * @return whether it is still away
     */
    boolean look() {
        boolean answers = answers();
        synchronized (this) {
            goodLooks = answers && !refused ? goodLooks + 1 : 0;
            refused = false;
            if (goodLooks >= wantedLooks) {
                end();
                return false;
            }
            if (clock.getAsLong() - saidNanos >= REPORT_NANOS) {
                report();
            }
            return true;
        }
    }

    private boolean answers() {
        try {
            question.run();
            return true;
        } catch (StoreException.Closed over) {
            throw over;
        } catch (RuntimeException none) {
            // Whatever it is, nobody would look again, and the log would never say that the server is back.
            return false;
        }
    }

    private void report() {
        LOGGER.warn(
                "The server of the {} store in {} is still away, for {} s now: {} reads and {} writes were refused, {} of them"
                        + " since the last such line. The last reason: {}",
                configuration.store(), configuration.directory(), seconds(), reads, writes, reads + writes - said, reason);
        said = reads + writes;
        saidNanos = clock.getAsLong();
    }

    private void end() {
        LOGGER.info(
                "The server of the {} store in {} is back after {} s, in which {} reads and {} writes were refused. Hints of"
                        + " other nodes come by themselves; run nodetool repair for writes that this node has coordinated",
                configuration.store(), configuration.directory(), seconds(), reads, writes);
        watcher = null;
        endedNanos = clock.getAsLong();
        reads = 0;
        writes = 0;
    }

    private long seconds() {
        return TimeUnit.NANOSECONDS.toSeconds(clock.getAsLong() - beganNanos);
    }

    /** Looks no more. */
    synchronized void close() {
        closed = true;
        if (watcher != null) {
            watcher.interrupt();
        }
    }
}
