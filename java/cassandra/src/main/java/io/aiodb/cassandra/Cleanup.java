package io.aiodb.cassandra;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Set;
import javax.management.StandardEmitterMBean;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.PartitionPosition;
import org.apache.cassandra.dht.IPartitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.service.StorageServiceMBean;
import org.apache.cassandra.utils.MBeanWrapper;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What nodetool sees as Cassandra's {@code StorageService}: that service, whose cleanup goes through stores as well. Its own
 * goes through SSTables only ({@code CompactionManager.performCleanup}), and tells nobody of it.
 */
final class Cleanup implements InvocationHandler {
    private static final Logger LOGGER = LoggerFactory.getLogger(Cleanup.class);

    private static final String NAME = "org.apache.cassandra.db:type=StorageService";
    private static final String CLEANUP = "forceKeyspaceCleanup";

    private Cleanup() {}

    /** Takes the place of the service in JMX, when it is there and nobody is served yet. */
    static void install() {
        StorageServiceMBean seen = (StorageServiceMBean) Proxy.newProxyInstance(
                Cleanup.class.getClassLoader(), new Class<?>[] {StorageServiceMBean.class}, new Cleanup());
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
        if (method.getName().equals(CLEANUP)) {
            int tables = arguments.length - 1;
            clean((String) arguments[tables - 1], (String[]) arguments[tables]);
        }
        return answer;
    }

    private static void clean(String keyspace, String[] tables) throws Exception {
        for (ColumnFamilyStore cfs : StorageService.instance.getValidColumnFamilies(false, false, keyspace, tables)) {
            Generation generation = AiodbMemtable.generationOf(cfs);
            if (generation != null && generation.tableOrNull() != null) {
                clean(cfs, generation);
            }
        }
    }

    /** Rows that a write is replacing at this moment may come back; another cleanup takes them. */
    private static void clean(ColumnFamilyStore cfs, Generation generation) {
        IPartitioner partitioner = cfs.getPartitioner();
        Token least = partitioner.getMinimumToken();
        Set<Range<Token>> owned =
                StorageService.instance.getLocalReplicas(cfs.getKeyspaceName()).ranges();
        Set<Range<Token>> others = new Range<>(least, least).subtractAll(owned);
        try {
            for (Range<Token> range : others) {
                range.unwrap().forEach(part -> remove(part, generation.tableOrNull()));
            }
            generation.sync();
        } catch (StoreException.NoSuchTable truncated) {
            LOGGER.info("The cleanup of {} ended with its rows", cfs.metadata());
        }
        LOGGER.info("Cleaned {}: removed what the store had of {} ranges of other nodes", cfs.metadata(), others.size());
    }

    private static void remove(Range<Token> range, Table table) {
        Range<PartitionPosition> rows = Range.makeRowRange(range);
        table.deleteRange(bound(rows.left), bound(rows.right), Durability.INTERVAL);
    }

    /** The first of all is also what stands for the end. */
    private static byte[] bound(PartitionPosition position) {
        return position.isMinimum() ? new byte[0] : StoredKey.bound(position.asComparableBound(true));
    }
}
