package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.store.Statistics;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import java.util.List;
import java.util.OptionalLong;
import javax.management.ObjectName;
import org.apache.cassandra.utils.MBeanWrapper;

/** A store in JMX, by its directory. Other stores than aiodb have no budget of their own, and no such bean. */
final class StoreManagement implements StoreManagementMXBean {
    private static final String BUDGET = "memory_budget_bytes";

    /** What Cassandra's own metrics say where there is nothing to say. */
    private static final long UNKNOWN = -1;

    private final Store store;

    private StoreManagement(Store store) {
        this.store = store;
    }

    /** Shows a store until the node ends. */
    static void register(OpenStore open) {
        if (open.configuration().store().equals(StoreConfiguration.AIODB)) {
            MBeanWrapper.instance.registerMBean(new StoreManagement(open.store()), name(open));
        }
    }

    /** The name of its bean. */
    static String name(OpenStore open) {
        return "io.aiodb.cassandra:type=Store,directory=" + ObjectName.quote(open.directory().toString());
    }

    @Override
    public long getMemoryBudgetBytes() {
        return count(BUDGET);
    }

    @Override
    public void setMemoryBudgetBytes(long bytes) {
        try {
            store.setMemoryBytes(bytes == 0 ? OptionalLong.empty() : OptionalLong.of(bytes));
        } catch (StoreException.Configuration refusal) {
            // Who asks by JMX need not have the classes of the store.
            throw new IllegalArgumentException(refusal.getMessage());
        }
    }

    @Override
    public long getMemoryBytes() {
        return count("memory_bytes");
    }

    @Override
    public long getMemoryFullSeconds() {
        return count("memory_full_seconds");
    }

    @Override
    public long getDiskFullSeconds() {
        return count("disk_full_seconds");
    }

    @Override
    public List<String> getWarnings() {
        return statistics().warnings();
    }

    private long count(String name) {
        return statistics().counters().getOrDefault(name, UNKNOWN);
    }

    /** As of now: who has changed something wants to see it. */
    private Statistics statistics() {
        return store.statistics();
    }
}
