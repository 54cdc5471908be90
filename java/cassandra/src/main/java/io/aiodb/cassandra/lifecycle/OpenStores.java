package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.compaction.UpdateMerger;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.store.Durability;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.service.StorageService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The stores that this process has opened. They stay open until the node ends. */
public final class OpenStores {
    private static final Logger LOGGER = LoggerFactory.getLogger(OpenStores.class);

    /** Of a large update, which is kept as one value; each of its rows has its whole key there. */
    private static final int VALUES_PER_MUTATION = 2;

    /** By their directories. A thread that changes it holds it. */
    private static final Map<Path, OpenStore> OPEN = new ConcurrentHashMap<>();

    private OpenStores() {}

    /**
     * The store of a configuration, opened at its first use. Configurations that name the same directory share it.
     *
     * @throws ConfigurationException if it cannot be opened, or is open with other parameters
     */
    public static OpenStore of(StoreConfiguration configuration) {
        OpenStore open = OPEN.get(configuration.directory());
        if (open == null) {
            open = openOnce(configuration);
        }
        checkSame(open.configuration(), configuration);
        return open;
    }

    private static OpenStore openOnce(StoreConfiguration configuration) {
        synchronized (OPEN) {
            OpenStore open = OPEN.get(configuration.directory());
            if (open == null) {
                open = open(configuration);
                if (OPEN.isEmpty()) {
                    closeWithNode();
                }
                OPEN.put(configuration.directory(), open);
            }
            return open;
        }
    }

    private static OpenStore open(StoreConfiguration configuration) {
        LOGGER.info("Opening the {} store in {}", configuration.store(), configuration.directory());
        try {
            UUID node = SystemKeyspace.getLocalHostId();
            Store store =
                    Stores.open(configuration.store(), configuration.directory(), configuration.storeParameters(node));
            try {
                requireRoom(store, configuration);
                OpenStore open = new OpenStore(configuration, store, UpdateMerger::merge);
                open.belongTo(node);
                configuration.keep();
                StoreManagement.register(open);
                return open;
            } catch (RuntimeException failure) {
                close(store::close, configuration);
                throw failure;
            }
        } catch (StoreException failure) {
            throw new ConfigurationException(
                    "the memtable's store in " + configuration.directory() + ": " + failure.getMessage(), failure);
        }
    }

    /** Refuses a store in which an update that Cassandra takes would not fit: its writes would fail, and be sent again. */
    private static void requireRoom(Store store, StoreConfiguration configuration) {
        long needed = (long) VALUES_PER_MUTATION * DatabaseDescriptor.getMaxMutationSize();
        int longest = store.capabilities().maxValueBytes();
        if (longest < needed) {
            throw new ConfigurationException("the memtable's store in " + configuration.directory() + " takes values of at most "
                    + longest + " bytes, and with this max_mutation_size there may be some of " + needed + ": raise what the"
                    + " server takes (`max_allowed_packet` of MySQL), or lower max_mutation_size");
        }
    }

    /**
     * Refuses to go on if the store of a configuration cannot be read now.
     *
     * @throws ConfigurationException that says why
     */
    public static void requireAnswer(StoreConfiguration configuration) {
        OpenStore open = of(configuration);
        try {
            open.catalog().node();
        } catch (StoreException failure) {
            throw new ConfigurationException("the memtable's store in " + open.directory() + ": " + failure.getMessage(), failure);
        }
    }

    /** Whether the store of a configuration is open, and of a kind whose every write waits for the disk. */
    public static boolean alwaysSyncs(StoreConfiguration configuration) {
        OpenStore open = OPEN.get(configuration.directory());
        return open != null && !open.store().capabilities().durabilities().contains(Durability.INTERVAL);
    }

    /** How many reads have failed because a store, or its server, did not answer. */
    public static long failedReads() {
        return OPEN.values().stream().mapToLong(OpenStore::failedReads).sum();
    }

    private static void checkSame(StoreConfiguration configuration, StoreConfiguration other) {
        if (!configuration.store().equals(other.store())
                || !configuration.storeParameters().equals(other.storeParameters())) {
            throw new ConfigurationException("memtable configurations with the same directory "
                    + configuration.directory() + " must agree on their store and its parameters: "
                    + configuration.store() + " " + configuration.storeParameters() + " and "
                    + other.store() + " " + other.storeParameters());
        }
    }

    /** Closes one whose server may be down. A failure is logged: it must not hide another one, or keep other stores open. */
    private static void close(Runnable close, StoreConfiguration configuration) {
        try {
            close.run();
        } catch (StoreException failure) {
            LOGGER.error("The store in {} was not closed as it should be: {}", configuration.directory(), failure.getMessage());
        }
    }

    /**
     * In a thread of its own: a node that joins waits, with the lock that this needs, for the change of the schema that
     * opens the store.
     */
    private static void closeWithNode() {
        Thread registering =
                new Thread(() -> StorageService.instance.addPostShutdownHook(OpenStores::closeAll), "aiodb-shutdown-hook");
        registering.setDaemon(true);
        registering.start();
    }

    private static void closeAll() {
        synchronized (OPEN) {
            for (OpenStore open : OPEN.values()) {
                LOGGER.info("Closing the {} store in {}", open.configuration().store(), open.directory());
                close(open::close, open.configuration());
            }
        }
    }
}
