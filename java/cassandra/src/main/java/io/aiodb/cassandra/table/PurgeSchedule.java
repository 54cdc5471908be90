package io.aiodb.cassandra.table;

import io.aiodb.cassandra.format.StoredTableStats;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import org.apache.cassandra.db.partitions.PartitionUpdate;

/** When a stored table is to be purged: not always, since a pass reads everything. */
public final class PurgeSchedule {
    /**
     * A pass is due after so many bytes, and half as many as it reads: about as many as Cassandra's own memtables merge in
     * memory.
     */
    private static final long LEAST_BYTES = 256 << 20;

    /** Or so long ago it was, and something may have expired. As often as Cassandra looks at SSTables for that. */
    private static final long INTERVAL_NANOS = 86_400_000_000_000L;

    private final ReplayBound replayBound = new ReplayBound();
    private final LongAdder written = new LongAdder();
    private final LongAdder appended = new LongAdder();
    private final AtomicBoolean running = new AtomicBoolean();
    private volatile long lastNanos = System.nanoTime();

    /** The bytes that a pass reads, about; 0 as long as nobody has asked. */
    private volatile long passBytes;

    /** Whether something was written since the last pass began that may hide rows which a pass would remove. */
    private volatile boolean hides;

    /** The writes since the pass began that is under way; null if none is. */
    private volatile EarliestTimestamps sincePass;

    PurgeSchedule() {}

    /**
     * Takes note of an update that was written.
     *
     * @param put whether it took the place of older rows, so that nothing of them is left for a pass
     * @param mayHide whether it deletes or expires, or is of a table with dropped columns
     */
    public void wrote(long bytes, boolean put, boolean mayHide) {
        written.add(bytes);
        if (!put) {
            appended.add(bytes);
        }
        if (mayHide && !hides) {
            hides = true;
        }
    }

    /** Takes note of an update that is about to be written. The caller holds its stripe. */
    public void writes(int stripe, PartitionUpdate update) {
        if (sincePass != null) {
            writes(stripe, StoredTableStats.stats(update).minTimestamp);
        }
    }

    /** The same of one whose timestamps are not earlier than this. */
    public void writes(int stripe, long minTimestamp) {
        EarliestTimestamps watched = sincePass;
        if (watched != null) {
            watched.lower(stripe, minTimestamp);
        }
    }

    /** Watches the writes from now on, until {@link #unwatch}; earlier writes have ended when this returns. */
    public EarliestTimestamps watch(PartitionLocks locks) {
        EarliestTimestamps watched = new EarliestTimestamps();
        sincePass = watched;
        locks.awaitWriters();
        return watched;
    }

    /** Stops watching writes. */
    public void unwatch() {
        sincePass = null;
    }

    /** Of the stored table. */
    public ReplayBound replayBound() {
        return replayBound;
    }

    /**
     * Begins a pass if one is due and none runs.
     *
     * @param size asked how much there is, about, where no pass has read it yet
     */
    public boolean begin(StoredTableStats stats, long gcBefore, LongSupplier size) {
        if (passBytes == 0 && isMuch(LEAST_BYTES)) {
            passBytes = size.getAsLong();
        }
        boolean worthIt = isMuch(Math.max(LEAST_BYTES, passBytes / 2));
        boolean old = System.nanoTime() - lastNanos > INTERVAL_NANOS;
        return (worthIt || old && stats.minLocalDeletionTime() < gcBefore) && beginNow();
    }

    private boolean isMuch(long bytes) {
        return appended.sum() > bytes || hides && written.sum() > bytes;
    }

    /** Begins a pass if none runs. */
    public boolean beginNow() {
        boolean begun = running.compareAndSet(false, true);
        if (begun) {
            written.reset();
            appended.reset();
            hides = false;
        }
        return begun;
    }

    /** Ends it. */
    public void end(long readBytes) {
        passBytes = readBytes;
        lastNanos = System.nanoTime();
        running.set(false);
    }
}
