package io.aiodb.cassandra.table;

import io.aiodb.cassandra.format.StoredKey;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Entries that are of many updates, waiting to be made into entries of one. Readers tell it of long ones, and it is
 * told of some writes, so that a row that is written ten thousand times and never read is not long for its first reader. The
 * merging is done in the background; but a thread that writes an entry which has been waiting since it was written before,
 * or finds the queue full, does it itself, or else fast writers would be ahead of the queue for ever.
 */
public final class MergeQueue {
    /** Updates that a row, or the header of a partition, may be of. */
    public static final int MAX_UPDATES = 16;

    /** One of so many updates is looked at when it is written. An entry is of some times as many before it is merged. */
    public static final int UPDATES_PER_REQUEST = 64;

    /** An update with longer frames than a 64th of this is looked at more often: once for so many bytes of its longest. */
    private static final int BYTES_PER_REQUEST = 1 << 20;

    /** Rows that are merged together, while writers of their partition wait. */
    private static final int MAX_ROWS = 128;

    /** Entries. It is no loss if others that readers find are left out: they are found again. */
    private static final int MAX_WAITING = 4096;

    private static final int MAX_REQUESTS = 1000;
    private static final long IDLE_SECONDS = 10;

    /** An entry; of a partition's header, the first. */
    private record Entry(StoredTable storedTable, ByteBuffer key) {}

    /**
     * Entries of a partition that are to be merged.
     *
     * @param rows the keys of some of its rows
     * @param withHeader whether the header of the partition is among them
     * @param known whether they are long for sure
     */
    public record Request(
            StoredTable storedTable,
            TableMetadata metadata,
            DecoratedKey key,
            List<byte[]> rows,
            boolean withHeader,
            boolean known) {
        private List<Entry> entries() {
            List<Entry> entries = new ArrayList<>();
            for (byte[] row : rows) {
                entries.add(new Entry(storedTable, ByteBuffer.wrap(row)));
            }
            if (withHeader) {
                byte[] first = StoredKey.Partition.of(key).entry(StoredKey.DELETION);
                entries.add(new Entry(storedTable, ByteBuffer.wrap(first)));
            }
            return entries;
        }
    }

    private final Consumer<Request> merger;
    private final Set<Entry> waiting = ConcurrentHashMap.newKeySet();
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MAX_REQUESTS),
            new NamedThreadFactory("aiodb-merger"),
            new ThreadPoolExecutor.AbortPolicy());

    /** @param merger merges the entries of a request; called by the thread of the queue and by writers, and never throws */
    MergeQueue(Consumer<Request> merger) {
        this.merger = merger;
        thread.allowCoreThreadTimeOut(true);
    }

    /** Gathers those rows of a partition that a reader finds to be long. */
    public final class Notes {
        private final StoredTable storedTable;
        private final TableMetadata metadata;
        private final DecoratedKey partition;
        private List<byte[]> rows = List.of();

        private Notes(StoredTable storedTable, TableMetadata metadata, DecoratedKey partition) {
            this.storedTable = storedTable;
            this.metadata = metadata;
            this.partition = partition;
        }

        /** Takes note of a row that {@link MergeQueue#isLong is long}. */
        public void row(ByteBuffer key) {
            byte[] copy = new byte[key.remaining()];
            key.get(key.position(), copy);
            rows = rows.isEmpty() ? new ArrayList<>() : rows;
            rows.add(copy);
            if (rows.size() == MAX_ROWS) {
                submit();
            }
        }

        /** Has the header of the partition merged, which is long. */
        public void header() {
            later(new Request(storedTable, metadata, partition, List.of(), true, true));
        }

        /** Has the rows merged that were noted. */
        public void submit() {
            if (!rows.isEmpty()) {
                later(new Request(storedTable, metadata, partition, rows, false, true));
                rows = List.of();
            }
        }
    }

    /** For the rows that a reader finds in a partition. */
    public Notes notes(StoredTable storedTable, TableMetadata metadata, DecoratedKey partition) {
        return new Notes(storedTable, metadata, partition);
    }

    /**
     * Takes note of an update that was written.
     *
     * @param longest the length of the longest frame that was appended without reading, in bytes; 0 if there is none
     */
    public void wrote(PartitionUpdate update, int longest, StoredTable storedTable) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        if (random.nextInt(BYTES_PER_REQUEST) >= Math.max(BYTES_PER_REQUEST / UPDATES_PER_REQUEST, longest)) {
            return;
        }
        TableMetadata metadata = update.metadata();
        StoredKey key = new StoredKey().partition(update.partitionKey());
        List<byte[]> rows = new ArrayList<>();
        // Of many rows some: the others are looked at after another update, or when they are read, or purged.
        int groups = Math.max(1, (update.rowCount() + MAX_ROWS - 1) / MAX_ROWS);
        int skipped = random.nextInt(groups) * MAX_ROWS;
        for (Row row : update) {
            if (skipped > 0) {
                skipped--;
                continue;
            }
            if (rows.size() == MAX_ROWS) {
                break;
            }
            rows.add(key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(row.clustering())).copy());
        }
        boolean withHeader = !update.deletionInfo().isLive() || !update.staticRow().isEmpty();
        Request request = new Request(storedTable, metadata, update.partitionKey(), rows, withHeader, false);
        if (!later(request)) {
            merger.accept(request);
        }
    }

    /** Whether a row of so many updates should be merged. */
    public static boolean isLong(int updates) {
        return updates > MAX_UPDATES;
    }

    /** Does it in the background. False if there is too much to do, or one of the entries is waiting already. */
    private boolean later(Request request) {
        if (waiting.size() >= MAX_WAITING) {
            return false;
        }
        List<Entry> added = new ArrayList<>();
        for (Entry entry : request.entries()) {
            if (!waiting.add(entry)) {
                added.forEach(waiting::remove);
                return false;
            }
            added.add(entry);
        }
        try {
            thread.execute(() -> {
                // A write from here on may not be seen, and is noted again.
                added.forEach(waiting::remove);
                merger.accept(request);
            });
        } catch (RejectedExecutionException full) {
            added.forEach(waiting::remove);
            return false;
        }
        return true;
    }

    /** Ends its thread. */
    void close() {
        thread.shutdownNow();
    }
}
