package io.aiodb.cassandra;

import io.aiodb.store.StoreException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.apache.cassandra.concurrent.NamedThreadFactory;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.schema.TableMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes rows that readers found to be of many updates into one, in the background. Readers would otherwise pay for each update
 * of a counter, say, every time. It is no loss if some are left out: the next reader finds them again.
 */
final class Folder {
    private static final Logger LOGGER = LoggerFactory.getLogger(Folder.class);

    /** Updates that a row may be of. */
    private static final int MAX_FRAMES = 16;

    private static final int MAX_WAITING = 1000;
    private static final long IDLE_SECONDS = 10;

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
    void read(Generation generation, TableMetadata metadata, DecoratedKey partition, byte[] key, int frames) {
        Key noted = new Key(generation, ByteBuffer.wrap(key));
        if (frames <= MAX_FRAMES || waiting.size() >= MAX_WAITING || !waiting.add(noted)) {
            return;
        }
        try {
            thread.execute(() -> fold(noted, metadata, partition));
        } catch (RejectedExecutionException full) {
            waiting.remove(noted);
        }
    }

    private void fold(Key noted, TableMetadata metadata, DecoratedKey partition) {
        try {
            Rewriter rewriter = new Rewriter(noted.generation, metadata);
            rewriter.rows(partition, List.of(noted.key.array()), false, UnaryOperator.identity());
        } catch (StoreException.NoSuchTable | StoreException.Closed over) {
            // The table was dropped or truncated, or the node ends.
        } catch (RuntimeException failure) {
            LOGGER.warn("{}: a row stays of many updates", metadata, failure);
        } finally {
            waiting.remove(noted);
        }
    }

    /** Ends its thread. */
    void close() {
        thread.shutdownNow();
    }
}
