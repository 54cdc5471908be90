package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.lifecycle.OpenStores;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.store.Durability;
import java.util.Locale;
import org.apache.cassandra.config.Config.CommitLogSync;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.MemtableParams;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Says where a power cut can take rows of which Cassandra's commit log says that they are there. A lightweight transaction
 * is first written to its table, then noted as committed in {@code system.paxos} ({@code PaxosState.applyCommit}); a logged
 * batch is first written, then removed from {@code system.batches}. The second has the commit log, the first has the store's
 * own.
 */
public final class DurabilityWarning {
    private static final Logger LOGGER = LoggerFactory.getLogger(DurabilityWarning.class);

    private DurabilityWarning() {}

    /** Warns of each memtable configuration for which this is so. */
    public static void warn() {
        for (String name : MemtableParams.knownDefinitions()) {
            String warning = warning(name);
            if (warning != null) {
                LOGGER.warn(warning);
            }
        }
    }

    private static String warning(String name) {
        try {
            StoreConfiguration configuration =
                    StoredMemtable.Factory.configurationOf(MemtableParams.get(name).factory());
            return configuration == null || OpenStores.alwaysSyncs(configuration)
                    ? null
                    : warning(name, configuration, DatabaseDescriptor.getCommitLogSync());
        } catch (ConfigurationException broken) {
            // A statement that uses it is told.
            return null;
        }
    }

    /** The warning about a configuration; null if it keeps the promises of the commit log. */
    static String warning(String name, StoreConfiguration configuration, CommitLogSync sync) {
        if (sync == CommitLogSync.periodic || configuration.durability() == Durability.SYNC) {
            return null;
        }
        return "cassandra.yaml: commitlog_sync: " + sync + " is beside the memtable configuration " + name + " with durability: "
                + configuration.durability().name().toLowerCase(Locale.ROOT)
                + ": a power cut can take what its tables acknowledged within the store's interval before, and with it the"
                + " rows of lightweight transactions and logged batches that the commit log keeps as done: give " + name
                + " the parameter durability: sync";
    }
}
