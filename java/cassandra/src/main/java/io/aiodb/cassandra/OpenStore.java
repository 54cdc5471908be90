package io.aiodb.cassandra;

import io.aiodb.store.Durability;
import io.aiodb.store.Statistics;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.service.StorageService;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A store of this node, open until the node ends, with what all of its tables share. */
final class OpenStore {
    private static final Logger LOGGER = LoggerFactory.getLogger(OpenStore.class);

    /** How old what gauges say may be. */
    static final long STATISTICS_NANOS = 1_000_000_000L;

    private record Counted(Statistics statistics, long atNanos) {}

    /** The open stores of this process by their directories. Whoever changes it holds it. */
    private static final Map<Path, OpenStore> OPEN = new ConcurrentHashMap<>();

    private final StoreConfiguration configuration;
    private final Store store;
    private final Catalog catalog;
    private final PartitionLocks locks = new PartitionLocks();
    private final UpdateMerger merger = new UpdateMerger();

    /** The headers of each table, made once; guarded by itself. */
    private final Map<TableId, SerializationHeaders> headers = new HashMap<>();

    /** What was counted last, and when; null before the first time. Guarded by this. */
    private Counted counted;

    /** Which stored tables memtables of this process have, stored or not; guarded by itself. */
    private final Map<TableId, Set<Integer>> attached = new HashMap<>();

    /** What uses one store together. {@link #of} is for all but tests. */
    OpenStore(StoreConfiguration configuration, Store store) {
        this.configuration = configuration;
        this.store = store;
        this.catalog = new Catalog(store);
    }

    /**
     * The store of a configuration, opened at its first use. Configurations that name the same directory share it.
     *
     * @throws ConfigurationException if it cannot be opened, or is open with other parameters
     */
    static OpenStore of(StoreConfiguration configuration) {
        OpenStore open = OPEN.get(configuration.directory());
        if (open == null) {
            open = openOnce(configuration);
        }
        open.checkSame(configuration);
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
            Store store =
                    Stores.open(configuration.store(), configuration.directory(), configuration.storeParameters());
            OpenStore open = new OpenStore(configuration, store);
            open.belongTo(SystemKeyspace.getLocalHostId());
            return open;
        } catch (StoreException failure) {
            throw new ConfigurationException(
                    "the memtable's store in " + configuration.directory() + ": " + failure.getMessage(), failure);
        }
    }

    /**
     * Makes the rows those of a node, unless they are another's already: to that one other tokens belong, and rows of a
     * node whose identity was lost may be of a ring that does not know it any more. Closes the store where it fails.
     */
    void belongTo(UUID node) {
        UUID owner = catalog.node();
        if (owner == null) {
            catalog.claim(node);
        } else if (!owner.equals(node)) {
            store.close();
            throw new ConfigurationException("the memtable's store in " + configuration.directory() + " belongs to the node "
                    + owner + ", and this is the node " + node + ": give this node a directory of its own; rows of another"
                    + " node come here by repair or from a snapshot");
        } else if (!catalog.hasKnownFormat()) {
            store.close();
            throw new ConfigurationException("the memtable's store in " + configuration.directory() + " has rows in a form that"
                    + " this version does not read: start the node with the version that wrote it, take its tables to another"
                    + " memtable by ALTER TABLE, and come back with this one");
        }
    }

    /** Whether the store of a configuration is open, and of a kind whose every write waits for the disk. */
    static boolean alwaysSyncs(StoreConfiguration configuration) {
        OpenStore open = OPEN.get(configuration.directory());
        return open != null && !open.store.capabilities().durabilities().contains(Durability.INTERVAL);
    }

    private void checkSame(StoreConfiguration other) {
        if (!configuration.store().equals(other.store())
                || !configuration.storeParameters().equals(other.storeParameters())) {
            throw new ConfigurationException("memtable configurations with the same directory "
                    + configuration.directory() + " must agree on their store and its parameters: "
                    + configuration.store() + " " + configuration.storeParameters() + " and "
                    + other.store() + " " + other.storeParameters());
        }
    }

    /**
     * In a thread of its own: a node that joins waits, with what this locks, for the change of the schema that opens the
     * store.
     */
    private static void closeWithNode() {
        Thread registering =
                new Thread(() -> StorageService.instance.addPostShutdownHook(OpenStore::closeAll), "aiodb-shutdown-hook");
        registering.setDaemon(true);
        registering.start();
    }

    private static void closeAll() {
        synchronized (OPEN) {
            for (OpenStore open : OPEN.values()) {
                LOGGER.info("Closing the {} store in {}", open.configuration.store(), open.configuration.directory());
                open.merger.close();
                open.store.close();
            }
        }
    }

    Store store() {
        return store;
    }

    /** Where it lies; the first of its directories. */
    Path directory() {
        return configuration.directory();
    }

    Catalog catalog() {
        return catalog;
    }

    UpdateMerger merger() {
        return merger;
    }

    PartitionLocks locks() {
        return locks;
    }

    /**
     * Sizes and counters of the whole store, at most {@link #STATISTICS_NANOS} old. Gauges are read many at a time, some for each
     * table, and counting goes through all tables.
     */
    Statistics statistics() {
        return statistics(System.nanoTime());
    }

    synchronized Statistics statistics(long nowNanos) {
        if (counted == null || nowNanos - counted.atNanos > STATISTICS_NANOS) {
            counted = new Counted(store.statistics(), nowNanos);
        }
        return counted.statistics;
    }

    /** The headers of a table's rows. */
    SerializationHeaders headers(TableId id) {
        synchronized (headers) {
            return headers.computeIfAbsent(id, table -> new SerializationHeaders(catalog.headers(table)));
        }
    }

    /** How many entries the live stored table of a table has, about. */
    long estimatedRows(TableId id) {
        long rows = 0;
        for (Catalog.Entry entry : catalog.generations(id)) {
            if (entry.state() == Catalog.State.LIVE) {
                rows += store.table(StoredTable.name(id, entry.number())).estimatedRows();
            }
        }
        return rows;
    }

    /** Takes a stored stored table for a memtable. False if another one has it. */
    boolean attach(TableId id, int number) {
        synchronized (attached) {
            return attached.computeIfAbsent(id, table -> new HashSet<>()).add(number);
        }
    }

    /** Whether a memtable of this process has a stored table. */
    boolean isAttached(TableId id, int number) {
        synchronized (attached) {
            return attached.getOrDefault(id, Set.of()).contains(number);
        }
    }

    /** Takes a new number for a memtable: greater than all that are stored or taken. */
    int attachNew(TableId id) {
        synchronized (attached) {
            Set<Integer> taken = attached.computeIfAbsent(id, table -> new HashSet<>());
            int number = taken.stream().mapToInt(Integer::intValue).max().orElse(0);
            for (Catalog.Entry stored : catalog.generations(id)) {
                number = Math.max(number, stored.number());
            }
            taken.add(number + 1);
            return number + 1;
        }
    }

    /** Gives a stored table up. */
    void detach(TableId id, int number) {
        synchronized (attached) {
            attached.get(id).remove(number);
        }
    }
}
