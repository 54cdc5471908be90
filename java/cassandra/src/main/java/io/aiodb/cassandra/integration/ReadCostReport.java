package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.lifecycle.OpenStores;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.gms.Gossiper;
import org.apache.cassandra.locator.DynamicEndpointSnitch;
import org.apache.cassandra.metrics.LatencyMetrics;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.service.StorageService;
import org.apache.cassandra.utils.FBUtilities;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the other nodes what a read costs this one, as the severity that their dynamic snitches add to its score. The cost is
 * what Cassandra measures of single-partition reads of users' tables on this node, in whichever memtable or store their rows
 * are: {@code TableMetrics.readLatency}, which has neither the time in queues nor that on the network.
 */
public final class ReadCostReport implements Runnable {
    private static final Logger LOGGER = LoggerFactory.getLogger(ReadCostReport.class);

    /** Of the virtual machine: the severity for each millisecond that a read takes. Without it nothing is reported. */
    private static final String WEIGHT = "aiodb.read.cost.weight";

    private static final int SECONDS = 1;

    /** A severity that differs by a smaller part from the one that was told is not told. */
    private static final double LEAST_CHANGE = 0.1;

    private static final Reads NONE = new Reads(0, 0);

    private final double weight;
    private final ReadCost cost = new ReadCost();
    private Map<TableId, Reads> counted = Map.of();
    private long failed;

    /** What a table had counted at some moment. */
    private record Reads(long count, long micros) {}

    private ReadCostReport(double weight) {
        this.weight = weight;
    }

    /**
     * Has the cost reported once a second, if the node was started with a weight.
     *
     * @throws ConfigurationException if that is none
     */
    public static void schedule() {
        double weight = weight(System.getProperty(WEIGHT));
        if (weight > 0) {
            LOGGER.info("Telling other nodes what reads cost: a severity of {} for each millisecond", weight);
            ScheduledExecutors.scheduledTasks.scheduleWithFixedDelay(
                    new ReadCostReport(weight), SECONDS, SECONDS, TimeUnit.SECONDS);
        }
    }

    /** The weight that was given; 0 if none was. */
    static double weight(String given) {
        if (given == null) {
            return 0;
        }
        try {
            double weight = Double.parseDouble(given);
            if (weight >= 0 && Double.isFinite(weight)) {
                return weight;
            }
        } catch (NumberFormatException wrong) {
            // Refused below.
        }
        throw new ConfigurationException("-D" + WEIGHT + "=" + given + ": give the severity for each millisecond that a read takes,"
                + " as 10, or 0 to report nothing");
    }

    @Override
    public void run() {
        if (!Gossiper.instance.isEnabled() || !isMember()) {
            return;
        }
        count();
        double severity = weight * cost.look();
        // Gossip may have begun anew since the last report.
        double told = DynamicEndpointSnitch.getSeverity(FBUtilities.getBroadcastAddressAndPort());
        if (isNews(told, severity)) {
            DynamicEndpointSnitch.addSeverity(severity);
        }
    }

    /** Whether others read here. A node has its {@code severity_during_decommission} before its mode says that it leaves. */
    private static boolean isMember() {
        return StorageService.instance.isNormal() && !StorageService.instance.isDecommissioning();
    }

    /** Whether a severity differs enough from the one that the others know. */
    static boolean isNews(double told, double severity) {
        return Math.abs(severity - told) > LEAST_CHANGE * Math.max(severity, told);
    }

    /** Takes what happened since the last time. */
    private void count() {
        countReads();
        long before = failed;
        failed = OpenStores.failedReads();
        if (failed > before) {
            cost.fail();
        }
    }

    /** Tables that were dropped take their counts with them. A keyspace that is being opened counts from the next time on. */
    private void countReads() {
        Map<TableId, Reads> now = new HashMap<>();
        Keyspace.allExisting()
                .filter(keyspace -> !SchemaConstants.isSystemKeyspace(keyspace.getName()))
                .flatMap(keyspace -> keyspace.getColumnFamilyStores().stream())
                .forEach(cfs -> now.put(cfs.metadata.id, reads(cfs.metric.readLatency)));
        now.forEach((table, reads) -> {
            Reads last = counted.getOrDefault(table, NONE);
            cost.add(reads.count - last.count, reads.micros - last.micros);
        });
        counted = now;
    }

    private static Reads reads(LatencyMetrics latency) {
        return new Reads(latency.latency.getCount(), latency.totalLatency.getCount());
    }
}
