package io.aiodb.cassandra;

import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
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
import java.util.function.UnaryOperator;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes entries that are of many updates into entries of one. Readers would otherwise pay for each update of a counter, say,
 * every time. It is told what readers found to be long, and some of what is written, so that what is written ten thousand
 * times and never read is not long for its first reader. It works in the background; but who writes what has been waiting
 * since it was written before does it himself, or else fast writers would be ahead of it for ever.
 */
final class UpdateMerger {
    private static final Logger LOGGER = LoggerFactory.getLogger(UpdateMerger.class);

    /** Updates that a row, or what belongs to a whole partition, may be of. */
    static final int MAX_UPDATES = 16;

    /** One of so many updates is looked at when it is written. An entry is of some times as many before it is merged. */
    static final int UPDATES_PER_LOOK = 64;

    /** Rows that are looked at together, while writers of their partition wait. */
    private static final int MAX_ROWS = 128;

    /** Entries. It is no loss if others are left out: they are found again. */
    private static final int MAX_WAITING = 4096;

    private static final int MAX_LOOKS = 1000;
    private static final long IDLE_SECONDS = 10;

    /** An entry; of what belongs to a whole partition, the first. */
    private record Entry(StoredTable storedTable, ByteBuffer key) {}

    /**
     * Entries of a partition.
     *
     * @param rows the keys of some of its rows
     * @param withHeader whether what belongs to the whole partition is among them
     * @param known whether they are long for sure
     */
    private record Look(
            StoredTable storedTable,
            TableMetadata metadata,
            DecoratedKey key,
            List<byte[]> rows,
            boolean withHeader,
            boolean known) {
        List<Entry> entries() {
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

    private final Set<Entry> waiting = ConcurrentHashMap.newKeySet();
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MAX_LOOKS),
            new NamedThreadFactory("aiodb-folder"),
            new ThreadPoolExecutor.AbortPolicy());

    UpdateMerger() {
        thread.allowCoreThreadTimeOut(true);
    }

    /** Gathers those rows of a partition that a reader finds to be long. */
    final class Notes {
        private final StoredTable storedTable;
        private final TableMetadata metadata;
        private final DecoratedKey partition;
        private List<byte[]> rows = List.of();

        private Notes(StoredTable storedTable, TableMetadata metadata, DecoratedKey partition) {
            this.storedTable = storedTable;
            this.metadata = metadata;
            this.partition = partition;
        }

        /** Takes note of a row that {@link UpdateMerger#isLong is long}. */
        void row(ByteBuffer key) {
            byte[] copy = new byte[key.remaining()];
            key.get(key.position(), copy);
            rows = rows.isEmpty() ? new ArrayList<>() : rows;
            rows.add(copy);
            if (rows.size() == MAX_ROWS) {
                fold();
            }
        }

        /** Takes note of what was read of the whole partition. */
        void header(PartitionHeader header) {
            if (isLong(header)) {
                later(new Look(storedTable, metadata, partition, List.of(), true, true));
            }
        }

        /** Has the rows merged. */
        void fold() {
            if (!rows.isEmpty()) {
                later(new Look(storedTable, metadata, partition, rows, false, true));
                rows = List.of();
            }
        }
    }

    /** For what a reader finds in a partition. */
    Notes notes(StoredTable storedTable, TableMetadata metadata, DecoratedKey partition) {
        return new Notes(storedTable, metadata, partition);
    }

    /** Takes note of what was written. */
    void wrote(PartitionUpdate update, StoredTable storedTable) {
        if (ThreadLocalRandom.current().nextInt(UPDATES_PER_LOOK) != 0) {
            return;
        }
        TableMetadata metadata = update.metadata();
        StoredKey key = new StoredKey().partition(update.partitionKey());
        List<byte[]> rows = new ArrayList<>();
        for (Row row : update) {
            // Those behind are looked at when they are read, or purged.
            if (rows.size() == MAX_ROWS) {
                break;
            }
            rows.add(key.entry(StoredKey.ROW, metadata.comparator.asByteComparable(row.clustering())).copy());
        }
        boolean withHeader = !update.deletionInfo().isLive() || !update.staticRow().isEmpty();
        Look look = new Look(storedTable, metadata, update.partitionKey(), rows, withHeader, false);
        if (!later(look)) {
            run(look);
        }
    }

    /** Whether a row of so many updates should be merged. */
    static boolean isLong(int updates) {
        return updates > MAX_UPDATES;
    }

    /** Whether merging makes it much shorter, which it cannot where there are many ranges. */
    private static boolean isLong(PartitionHeader header) {
        return header.updates() > MAX_UPDATES && header.updates() > 2 * header.folded();
    }

    /** Does it in the background, unless there is too much. False if one of the entries is waiting already. */
    private boolean later(Look look) {
        if (waiting.size() >= MAX_WAITING) {
            return true;
        }
        List<Entry> added = new ArrayList<>();
        for (Entry entry : look.entries()) {
            if (!waiting.add(entry)) {
                added.forEach(waiting::remove);
                return false;
            }
            added.add(entry);
        }
        try {
            thread.execute(() -> {
                // What is written from here on may not be seen, and is noted again.
                added.forEach(waiting::remove);
                run(look);
            });
        } catch (RejectedExecutionException full) {
            added.forEach(waiting::remove);
        }
        return true;
    }

    private void run(Look look) {
        try {
            EntryRewriter rewriter = new EntryRewriter(look.storedTable, look.metadata);
            List<byte[]> rows = look.known ? look.rows : longRows(look);
            if (!rows.isEmpty()) {
                rewriter.rows(look.key, rows, false, UnaryOperator.identity());
            }
            if (look.withHeader) {
                mergeHeader(look, rewriter);
            }
        } catch (StoreException.NoSuchTable | StoreException.Closed over) {
            // The table was dropped or truncated, or the node ends.
        } catch (RuntimeException failure) {
            LOGGER.warn("{}: entries stay of many updates", look.metadata, failure);
        }
    }

    private static List<byte[]> longRows(Look look) {
        Table table = look.storedTable.table();
        List<byte[]> rows = new ArrayList<>();
        for (byte[] key : look.rows) {
            byte[] found = table.get(key);
            if (found != null && isLong(Frames.count(ByteBuffer.wrap(found)))) {
                rows.add(key);
            }
        }
        return rows;
    }

    private static void mergeHeader(Look look, EntryRewriter rewriter) {
        StoredKey.Partition partition = StoredKey.Partition.of(look.key);
        StoredKey key = new StoredKey().partition(look.key);
        EntrySource source = EntrySource.latest(look.storedTable.table());
        PartitionHeader header = PartitionHeader.read(source, key, look.storedTable, look.metadata, ColumnFilter.all(look.metadata));
        if (!isLong(header)) {
            return;
        }
        if (header.updates(StoredKey.DELETION) > 1) {
            rewriter.deletion(partition, time -> true);
        }
        if (header.updates(StoredKey.STATIC) > 1) {
            List<byte[]> row = List.of(partition.entry(StoredKey.STATIC));
            rewriter.rows(look.key, row, true, UnaryOperator.identity());
        }
        if (header.updates(StoredKey.RANGE_TOMBSTONE) > 1) {
            rewriter.rangeTombstones(partition, time -> true);
        }
    }

    /** Ends its thread. */
    void close() {
        thread.shutdownNow();
    }
}
