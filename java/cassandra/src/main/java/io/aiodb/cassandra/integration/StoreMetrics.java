package io.aiodb.cassandra.integration;

import com.codahale.metrics.Gauge;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.store.TableModes;
import io.aiodb.store.TableStatistics;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToLongFunction;
import org.apache.cassandra.metrics.CassandraMetricsRegistry.MetricName;
import org.apache.cassandra.metrics.CassandraMetricsRegistry;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.schema.TableMetadataRef;

/**
 * Metrics of a table's store, as MBeans of the type {@code AiodbMemtable} beside those that Cassandra has for each table:
 * its rows, what memory has of them, and what the store counts for all of its tables together.
 */
public final class StoreMetrics implements TableMetrics.ReleasableMetric {
    private static final String GROUP = TableMetrics.class.getPackage().getName();
    private static final String TYPE = "AiodbMemtable";

    /** What the store counts of one table, by the names of the MBeans. */
    private static final Map<String, String> COUNTERS = Map.of(
            "Runs", "runs",
            "RunBytes", "run_bytes",
            "MergeDebtBytes", "merge_debt_bytes",
            "CachedBlockBytes", "cached_block_bytes",
            "CachedValueBytes", "cached_value_bytes",
            "ValueHits", "value_hits",
            "ValueMisses", "value_misses");

    /** What the store counts at times only: seconds until memory and disk are full, where they grow. */
    private static final Set<String> AT_TIMES = Set.of("memory_full_seconds", "disk_full_seconds");

    /** What stands for them at other times. */
    private static final long UNKNOWN = -1;

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
        if (open.store().capabilities().storageModes()) {
            addModes(metadata);
        }
        for (String counter : counters().keySet()) {
            if (!AT_TIMES.contains(counter)) {
                add("Store." + counter, store -> store.statistics().counters().get(counter));
            }
        }
        for (String counter : AT_TIMES) {
            add("Store." + counter, store -> store.statistics().counters().getOrDefault(counter, UNKNOWN));
        }
        gauge("Store.warnings", () -> String.join("\n", open.statistics().warnings()));
    }

    /** The table's modes, and where its keys and values are; a share that nobody knows is no number. */
    private void addModes(TableMetadataRef metadata) {
        gauge("KeysMode", () -> modes(metadata).keys().name().toLowerCase(Locale.ROOT));
        gauge("ValuesMode", () -> modes(metadata).values().name().toLowerCase(Locale.ROOT));
        gauge("KeysInMemoryRatio", () -> ofTable(metadata, found -> found.keysInMemory().orElse(Double.NaN), Double.NaN));
        gauge("ValuesInMemoryRatio", () -> ofTable(metadata, found -> found.valuesInMemory().orElse(Double.NaN), Double.NaN));
        COUNTERS.forEach((name, counter) -> gauge(name, () -> ofTable(metadata, found -> found.counters().get(counter), 0L)));
    }

    /** Those that its rows have; before there are any, those that they will have. */
    private TableModes modes(TableMetadataRef metadata) {
        StoreConfiguration wanted =
                StoredMemtable.Factory.configurationOf(metadata.get().params.memtable.factory());
        return ofTable(metadata, TableStatistics::modes, wanted == null ? TableModes.AUTO : wanted.modes());
    }

    private <T> T ofTable(TableMetadataRef metadata, Function<TableStatistics, T> value, T withoutRows) {
        return open.statistics(metadata.id).map(value).orElse(withoutRows);
    }

    private Map<String, Long> counters() {
        return new TreeMap<>(open.statistics().counters());
    }

    private void add(String name, ToLongFunction<OpenStore> value) {
        gauge(name, () -> value.applyAsLong(open));
    }

    private void gauge(String name, Gauge<?> gauge) {
        String mbean = GROUP + ":type=" + TYPE + ",keyspace=" + keyspace + ",scope=" + table + ",name=" + name;
        MetricName full = new MetricName(GROUP, TYPE, name, keyspace + "." + table, mbean);
        CassandraMetricsRegistry.Metrics.register(full, gauge);
        names.add(full);
    }

    @Override
    public void release() {
        names.forEach(CassandraMetricsRegistry.Metrics::remove);
    }
}
