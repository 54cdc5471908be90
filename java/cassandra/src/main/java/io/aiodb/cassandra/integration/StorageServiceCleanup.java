package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.compaction.UnownedRanges;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.store.StoreException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import javax.management.StandardEmitterMBean;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.CompactionManager.AllSSTableOpStatus;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.service.PendingRangeCalculatorService;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.service.StorageServiceMBean;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.MBeanWrapper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Cassandra's {@code StorageService} as nodetool sees it: that service, whose cleanup goes through stores as well. Its own
 * goes through SSTables only ({@code CompactionManager.performCleanup}), and tells nobody of it.
 */
public final class StorageServiceCleanup implements InvocationHandler {
    private static final Logger LOGGER = LoggerFactory.getLogger(StorageServiceCleanup.class);

    private static final String NAME = "org.apache.cassandra.db:type=StorageService";
    private static final String CLEANUP = "forceKeyspaceCleanup";

    private StorageServiceCleanup() {}

    /** Takes the place of the service in JMX, when it is there and nobody is served yet. */
    public static void install() {
        StorageServiceMBean seen = (StorageServiceMBean) Proxy.newProxyInstance(
                StorageServiceCleanup.class.getClassLoader(),
                new Class<?>[] {StorageServiceMBean.class},
                new StorageServiceCleanup());
        MBeanWrapper.instance.unregisterMBean(NAME);
        MBeanWrapper.instance.registerMBean(
                new StandardEmitterMBean(seen, StorageServiceMBean.class, StorageService.instance), NAME);
    }

    @Override
    public Object invoke(Object seen, Method method, Object[] arguments) throws Throwable {
        Object answer;
        try {
            // It refuses a cleanup while the ring changes, and says whether one of SSTables has failed.
            answer = method.invoke(StorageService.instance, arguments);
        } catch (InvocationTargetException failure) {
            throw failure.getCause();
        }
        if (!method.getName().equals(CLEANUP) || !answer.equals(AllSSTableOpStatus.SUCCESSFUL.statusCode)) {
            // SSTables that were not cleaned may have rows that deletions in a store hide.
            return answer;
        }
        int tables = arguments.length - 1;
        boolean whole = clean((String) arguments[tables - 1], (String[]) arguments[tables]);
        return whole ? answer : (Object) AllSSTableOpStatus.ABORTED.statusCode;
    }

    /** Whether all of it was done. */
    private static boolean clean(String keyspace, String[] tables) throws Exception {
        boolean whole = true;
        for (ColumnFamilyStore cfs : StorageService.instance.getValidColumnFamilies(false, false, keyspace, tables)) {
            StoredTable storedTable = StoredMemtable.storedTableOf(cfs);
            if (storedTable != null && storedTable.tableOrNull() != null) {
                whole &= clean(cfs, storedTable);
            }
        }
        return whole;
    }

    private static boolean clean(ColumnFamilyStore cfs, StoredTable storedTable) {
        // A deletion that goes now may hide rows that the commit log has.
        boolean whole = storedTable.purgeSchedule().replayBound().raise(cfs, storedTable);
        try {
            PendingRangeCalculatorService.instance.blockUntilFinished();
            whole = whole && UnownedRanges.remove(storedTable, cfs.getPartitioner(), ring(cfs.getKeyspaceName()));
            storedTable.sync();
        } catch (StoreException.NoSuchTable truncated) {
            LOGGER.info("The cleanup of {} ended with its rows", cfs.metadata());
        }
        if (whole) {
            LOGGER.info("Cleaned {}: the store has only rows of the ranges of this node", cfs.metadata());
        } else {
            LOGGER.info(
                    "The cleanup of {} was not done, or in part: ranges are becoming this node's, or the table is coming from"
                            + " another memtable; try again when that is over",
                    cfs.metadata());
        }
        return whole;
    }

    private static UnownedRanges.Ring ring(String keyspace) {
        return new UnownedRanges.Ring() {
            @Override
            public boolean isPending() {
                return !StorageService.instance
                        .getTokenMetadata()
                        .getPendingRanges(keyspace, FBUtilities.getBroadcastAddressAndPort())
                        .isEmpty();
            }

            @Override
            public Set<Range<Token>> owned() {
                return StorageService.instance.getLocalReplicas(keyspace).ranges();
            }
        };
    }
}
