package io.aiodb.cassandra.compaction;

import io.aiodb.cassandra.format.FrameReader;
import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.read.PartitionHeader;
import io.aiodb.cassandra.table.MergeQueue;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes entries that are of many updates into entries of one. Readers would otherwise pay for each update of a counter, say,
 * every time. A {@link MergeQueue} says which entries, and when.
 */
public final class UpdateMerger {
    private static final Logger LOGGER = LoggerFactory.getLogger(UpdateMerger.class);

    private UpdateMerger() {}

    /**
     * Merges the entries of a request that are long. A failure is logged: the entries stay as they are, and are found again.
     */
    public static void merge(MergeQueue.Request request) {
        try {
            EntryRewriter rewriter = new EntryRewriter(request.storedTable(), request.metadata());
            List<byte[]> rows = request.known() ? request.rows() : longRows(request);
            if (!rows.isEmpty()) {
                rewriter.rows(request.key(), rows, false, UnaryOperator.identity());
            }
            if (request.withHeader()) {
                mergeHeader(request, rewriter);
            }
        } catch (StoreException.NoSuchTable | StoreException.Closed over) {
            // The table was dropped or truncated, or the node ends.
        } catch (StoreException.Unavailable away) {
            request.storedTable().open().outage().noticed(away);
        } catch (RuntimeException failure) {
            LOGGER.warn("{}: entries stay of many updates", request.metadata(), failure);
        }
    }

    private static List<byte[]> longRows(MergeQueue.Request request) {
        Table table = request.storedTable().table();
        List<byte[]> rows = new ArrayList<>();
        for (byte[] key : request.rows()) {
            byte[] found = table.get(key);
            if (found != null && MergeQueue.isLong(FrameReader.count(ByteBuffer.wrap(found)))) {
                rows.add(key);
            }
        }
        return rows;
    }

    private static void mergeHeader(MergeQueue.Request request, EntryRewriter rewriter) {
        StoredKey.Partition partition = StoredKey.Partition.of(request.key());
        PartitionHeader header =
                PartitionHeader.latest(request.storedTable(), request.metadata(), request.key());
        if (!header.isLong()) {
            return;
        }
        if (header.updates(StoredKey.DELETION) > 1) {
            rewriter.deletion(partition, time -> true);
        }
        if (header.updates(StoredKey.STATIC) > 1) {
            List<byte[]> row = List.of(partition.entry(StoredKey.STATIC));
            rewriter.rows(request.key(), row, true, UnaryOperator.identity());
        }
        if (header.updates(StoredKey.RANGE_TOMBSTONE) > 1) {
            rewriter.rangeTombstones(partition, time -> true);
        }
    }
}
