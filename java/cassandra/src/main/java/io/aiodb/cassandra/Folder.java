package io.aiodb.cassandra;

import com.google.common.collect.Iterators;
import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
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
 * Makes entries that are of many updates into entries of one, in the background. Readers would otherwise pay for each update
 * of a counter, say, every time. It looks at what readers found to be long, and at some of what is written, so that what is
 * written ten thousand times and never read is not long for its first reader. It is no loss if some are left out: they are
 * found again.
 */
final class Folder {
    private static final Logger LOGGER = LoggerFactory.getLogger(Folder.class);

    /** Updates that a row, or what belongs to a whole partition, may be of. */
    static final int MAX_UPDATES = 16;

    /** One of so many updates is looked at when it is written. An entry is of some times as many before it is folded. */
    static final int UPDATES_PER_LOOK = 128;

    private static final int MAX_WAITING = 1000;
    private static final long IDLE_SECONDS = 10;

    /** An entry; of what belongs to a whole partition, its first. */
    private record Key(Generation generation, ByteBuffer key) {}

    private final Set<Key> waiting = ConcurrentHashMap.newKeySet();
    private final ThreadPoolExecutor thread = new ThreadPoolExecutor(
            1,
            1,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MAX_WAITING),
            new NamedThreadFactory("aiodb-folder"),
            new ThreadPoolExecutor.AbortPolicy());

    Folder() {
        thread.allowCoreThreadTimeOut(true);
    }

    /** Takes note of a row that was read. */
    void readRow(
            Generation generation, TableMetadata metadata, DecoratedKey partition, ByteBuffer key, ByteBuffer value) {
        if (Frames.count(value) > MAX_UPDATES) {
            byte[] copy = new byte[key.remaining()];
            key.get(key.position(), copy);
            lookAtRow(generation, metadata, partition, copy);
        }
    }

    /** Takes note of what was read of a whole partition. */
    void readHead(Generation generation, TableMetadata metadata, DecoratedKey partition, Head head) {
        if (isLong(head)) {
            lookAtHead(generation, metadata, partition);
        }
    }

    /** Takes note of what was written. */
    void wrote(PartitionUpdate update, Generation generation) {
        if (ThreadLocalRandom.current().nextInt(UPDATES_PER_LOOK) != 0) {
            return;
        }
        TableMetadata metadata = update.metadata();
        DecoratedKey partition = update.partitionKey();
        if (!update.deletionInfo().isLive() || !update.staticRow().isEmpty()) {
            lookAtHead(generation, metadata, partition);
        }
        if (update.hasRows()) {
            int chosen = ThreadLocalRandom.current().nextInt(update.rowCount());
            Row row = Iterators.get(update.iterator(), chosen);
            var clustering = metadata.comparator.asByteComparable(row.clustering());
            byte[] key = new StoredKey().partition(partition).entry(StoredKey.ROW, clustering).copy();
            lookAtRow(generation, metadata, partition, key);
        }
    }

    /** Whether folding makes it much shorter, which it cannot where there are many ranges. */
    private static boolean isLong(Head head) {
        return head.updates() > MAX_UPDATES && head.updates() > 2 * head.folded();
    }

    private void lookAtRow(Generation generation, TableMetadata metadata, DecoratedKey partition, byte[] key) {
        later(new Key(generation, ByteBuffer.wrap(key)), metadata, () -> {
            byte[] found = generation.table().get(key);
            if (found != null && Frames.count(ByteBuffer.wrap(found)) > MAX_UPDATES) {
                new Rewriter(generation, metadata).rows(partition, List.of(key), false, UnaryOperator.identity());
            }
        });
    }

    private void lookAtHead(Generation generation, TableMetadata metadata, DecoratedKey key) {
        StoredKey.Partition partition = StoredKey.Partition.of(key);
        ByteBuffer first = ByteBuffer.wrap(partition.entry(StoredKey.DELETION));
        later(new Key(generation, first), metadata, () -> {
            StoredKey stored = new StoredKey().partition(key);
            Source source = Source.latest(generation.table());
            Head head = Head.read(source, stored, generation, metadata, ColumnFilter.all(metadata));
            if (isLong(head)) {
                fold(head, partition, new Rewriter(generation, metadata));
            }
        });
    }

    private static void fold(Head head, StoredKey.Partition partition, Rewriter rewriter) {
        if (head.updates(StoredKey.DELETION) > 1) {
            rewriter.deletion(partition, time -> true);
        }
        if (head.updates(StoredKey.STATIC) > 1) {
            List<byte[]> key = List.of(partition.entry(StoredKey.STATIC));
            rewriter.rows(partition.key(), key, true, UnaryOperator.identity());
        }
        if (head.updates(StoredKey.RANGE_TOMBSTONE) > 1) {
            rewriter.rangeTombstones(partition, time -> true);
        }
    }

    private void later(Key key, TableMetadata metadata, Runnable look) {
        if (waiting.size() >= MAX_WAITING || !waiting.add(key)) {
            return;
        }
        try {
            thread.execute(() -> run(key, metadata, look));
        } catch (RejectedExecutionException full) {
            waiting.remove(key);
        }
    }

    private void run(Key key, TableMetadata metadata, Runnable look) {
        // What is written from here on is not seen for sure, and may be noted again.
        waiting.remove(key);
        try {
            look.run();
        } catch (StoreException.NoSuchTable | StoreException.Closed over) {
            // The table was dropped or truncated, or the node ends.
        } catch (RuntimeException failure) {
            LOGGER.warn("{}: an entry stays of many updates", metadata, failure);
        }
    }

    /** Ends its thread. */
    void close() {
        thread.shutdownNow();
    }
}
