package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.read.SizeSample;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.StoreException;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.config.CassandraRelevantProperties;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SizeEstimatesRecorder;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.Pair;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes {@code system.size_estimates} and {@code system.table_estimates} for tables in stores, from a sample of their rows.
 * Cassandra's own {@code SizeEstimatesRecorder} looks at SSTables only, so it runs as a part of this one, which then
 * corrects the rows that it has written.
 */
public final class StoreSizeEstimates implements Runnable {
    private static final Logger LOGGER = LoggerFactory.getLogger(StoreSizeEstimates.class);

    private static final int FIRST_SECONDS = 30;

    /** Of Cassandra's recorder, which is 0 now. */
    private final int seconds;

    private StoreSizeEstimates(int seconds) {
        this.seconds = seconds;
    }

    /** Takes the place of Cassandra's recorder, before the node starts it. */
    public static StoreSizeEstimates replace() {
        int seconds = CassandraRelevantProperties.SIZE_RECORDER_INTERVAL.getInt();
        CassandraRelevantProperties.SIZE_RECORDER_INTERVAL.setInt(0);
        return new StoreSizeEstimates(seconds);
    }

    /** Records as often as Cassandra would have. */
    public void schedule() {
        if (seconds > 0) {
            ScheduledExecutors.optionalTasks.scheduleWithFixedDelay(this, FIRST_SECONDS, seconds, TimeUnit.SECONDS);
        }
    }

    @Override
    public void run() {
        SizeEstimatesRecorder.instance.run();
        if (!StorageService.instance.getTokenMetadata().isMember(FBUtilities.getBroadcastAddressAndPort())) {
            return;
        }
        for (Keyspace keyspace : Keyspace.nonLocalStrategy()) {
            for (ColumnFamilyStore cfs : keyspace.getColumnFamilyStores()) {
                StoredTable storedTable = StoredMemtable.storedTableOf(cfs);
                // Without a splitter nobody knows how large a part of the ring is.
                if (storedTable != null && cfs.getPartitioner().splitter().isPresent()) {
                    record(cfs, storedTable);
                }
            }
        }
    }

    private static void record(ColumnFamilyStore cfs, StoredTable storedTable) {
        try {
            record(cfs, SizeSample.sample(storedTable, null, null, cfs.getPartitioner()));
        } catch (StoreException.Unavailable away) {
            storedTable.open().outage().noticed(away);
        } catch (StoreException failure) {
            LOGGER.warn("The sizes of {} are not estimated: {}", cfs.metadata(), failure.getMessage());
        }
    }

    private static void record(ColumnFamilyStore cfs, SizeSample sizes) {
        String keyspace = cfs.getKeyspaceName();
        String table = cfs.getTableName();
        double held = StorageService.instance.getLocalReplicas(keyspace).ranges().stream()
                .mapToDouble(StoreSizeEstimates::part)
                .sum();
        Map<Range<Token>, Pair<Long, Long>> primary =
                estimates(StorageService.instance.getPrimaryRanges(keyspace), sizes, held);
        SystemKeyspace.updateSizeEstimates(keyspace, table, primary);
        SystemKeyspace.updateTableEstimates(keyspace, table, SystemKeyspace.TABLE_ESTIMATES_TYPE_PRIMARY, primary);
        SystemKeyspace.updateTableEstimates(
                keyspace,
                table,
                SystemKeyspace.TABLE_ESTIMATES_TYPE_LOCAL_PRIMARY,
                estimates(StorageService.instance.getLocalPrimaryRange(), sizes, held));
    }

    /** Partitions and their mean size, as if they lay evenly in the parts of the ring that the node holds. */
    private static Map<Range<Token>, Pair<Long, Long>> estimates(
            Collection<Range<Token>> ranges, SizeSample sizes, double held) {
        long meanBytes = sizes.partitions() == 0 ? 0 : sizes.bytes() / sizes.partitions();
        Map<Range<Token>, Pair<Long, Long>> estimates = new HashMap<>();
        for (Range<Token> range : ranges) {
            for (Range<Token> part : range.unwrap()) {
                long partitions = held == 0 ? 0 : Math.round(sizes.partitions() * part(part) / held);
                estimates.put(part, Pair.create(partitions, partitions == 0 ? 0 : meanBytes));
            }
        }
        return estimates;
    }

    /** How much of the ring a range is, from 0 to 1. */
    private static double part(Range<Token> range) {
        return range.left.size(range.right);
    }
}
