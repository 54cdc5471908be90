package io.aiodb.cassandra.integration;

import com.codahale.metrics.Gauge;
import io.aiodb.cassandra.table.OpenStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.ToLongFunction;
import org.apache.cassandra.metrics.CassandraMetricsRegistry.MetricName;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * Metrics of a table's store, as MBeans of the type {@code AiodbMemtable} beside those that Cassandra has for each table:
 * its rows, and what the store counts for all of its tables together.
 */
public final class StoreMetrics implements TableMetrics.ReleasableMetric {
    private static final String GROUP = TableMetrics.class.getPackage().getName();
    private static final String TYPE = "AiodbMemtable";

    private final OpenStore open;
    private final String keyspace;
    private final String table;
    private final List<MetricName> names = new ArrayList<>();

    /** Registers the MBeans of a table, until they are released. */
    public StoreMetrics(OpenStore open, TableMetadataRef metadata) {
        this.open = open;
        this.keyspace = metadata.keyspace;
        this.table = metadata.name;
        add("StoredEntries", store -> store.estimatedRows(metadata.id));
        add("StoreDiskBytes", store -> store.statistics().diskBytes());
        add("StoreEntries", store -> store.statistics().estimatedRows());
        for (String counter : counters().keySet()) {
            add("Store." + counter, store -> store.statistics().counters().get(counter));
        }
    }

    private Map<String, Long> counters() {
        return new TreeMap<>(open.statistics().counters());
    }

    private void add(String name, ToLongFunction<OpenStore> value) {
        String mbean = GROUP + ":type=" + TYPE + ",keyspace=" + keyspace + ",scope=" + table + ",name=" + name;
        MetricName full = new MetricName(GROUP, TYPE, name, keyspace + "." + table, mbean);
        Gauge<Long> gauge = () -> value.applyAsLong(open);
        CassandraMetricsRegistry.Metrics.register(full, gauge);
        names.add(full);
    }

    @Override
    public void release() {
        names.forEach(CassandraMetricsRegistry.Metrics::remove);
    }
}
