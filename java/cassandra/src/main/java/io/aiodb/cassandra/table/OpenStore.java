package io.aiodb.cassandra.table;

import io.aiodb.cassandra.format.SerializationHeaders;
import io.aiodb.store.Statistics;
import io.aiodb.store.Store;
import io.aiodb.store.TableStatistics;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.TableId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A store of this node, open until the node ends, with the state that all of its tables share. */
public final class OpenStore {
    private static final Logger LOGGER = LoggerFactory.getLogger(OpenStore.class);

    /** How old the figures of gauges may be. */
    static final long STATISTICS_NANOS = 1_000_000_000L;

    private record Counted(Statistics statistics, long atNanos) {}

    private final StoreConfiguration configuration;
    private final Store store;
    private final Catalog catalog;
    private final PartitionLocks locks = new PartitionLocks();
    private final MergeQueue mergeQueue;
    private final LongAdder failedReads = new LongAdder();
    private final ServerOutage outage;

    /** The headers of each table, made once; guarded by itself. */
    private final Map<TableId, SerializationHeaders> headers = new HashMap<>();

    /** The figures that were counted last, and when; null before the first time. Guarded by this. */
    private Counted counted;

    /** Which stored tables memtables of this process have, stored or not; guarded by itself. */
    private final Map<TableId, Set<Integer>> attached = new HashMap<>();

    /**
     * The state that the tables of one store share.
     *
     * @param store closed with this
     * @param merger called by its {@link MergeQueue}
     */
    public OpenStore(StoreConfiguration configuration, Store store, Consumer<MergeQueue.Request> merger) {
        this.configuration = configuration;
        this.store = store;
        this.catalog = new Catalog(store);
        this.mergeQueue = new MergeQueue(merger);
        this.outage = new ServerOutage(configuration, catalog::node);
    }

    /**
     * Makes the rows those of a node, unless they are another's already: to that one other tokens belong, and rows of a
     * node whose identity was lost may be of a ring that does not know it any more. Closes the store where it fails.
     */
    public void belongTo(UUID node) {
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

    /** The configuration that it was opened with. */
    public StoreConfiguration configuration() {
        return configuration;
    }

    /** The store itself; closed when the node ends. */
    public Store store() {
        return store;
    }

    /** Where it lies; the first of its directories. */
    public Path directory() {
        return configuration.directory();
    }

    /** The catalog of its stored tables. */
    public Catalog catalog() {
        return catalog;
    }

    /** The entries of its tables that wait to be merged. */
    public MergeQueue mergeQueue() {
        return mergeQueue;
    }

    /** Whether its server answers, if it has one. */
    public ServerOutage outage() {
        return outage;
    }

    /** Counts a read that failed because the store, or its server, does not answer. */
    void readFailed() {
        failedReads.increment();
    }

    /** How many reads have failed so since the store was opened. */
    public long failedReads() {
        return failedReads.sum();
    }

    /** The locks of the partitions of all its tables. */
    public PartitionLocks locks() {
        return locks;
    }

    /**
     * Sizes and counters of the whole store, at most {@link #STATISTICS_NANOS} old. Gauges are read many at a time, some for
     * each table, and counting goes through all tables.
     */
    public Statistics statistics() {
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
    public long estimatedRows(TableId id) {
        long rows = 0;
        for (Catalog.Entry entry : catalog.storedTables(id)) {
            if (entry.state() == Catalog.State.LIVE) {
                rows += store.table(StoredTable.name(id, entry.number())).estimatedRows();
            }
        }
        return rows;
    }

    /** What is known of the live stored table of a table; nothing if it has no rows yet. */
    public Optional<TableStatistics> statistics(TableId id) {
        return catalog.storedTables(id).stream()
                .filter(entry -> entry.state() == Catalog.State.LIVE)
                .findFirst()
                .map(entry -> store.table(StoredTable.name(id, entry.number())).statistics());
    }

    /** Takes a stored stored table for a memtable. False if another one has it. */
    public boolean attach(TableId id, int number) {
        synchronized (attached) {
            return attached.computeIfAbsent(id, table -> new HashSet<>()).add(number);
        }
    }

    /** Whether a memtable of this process has a stored table. */
    public boolean isAttached(TableId id, int number) {
        synchronized (attached) {
            return attached.getOrDefault(id, Set.of()).contains(number);
        }
    }

    /** Takes a new number for a memtable: greater than all that are stored or taken. */
    int attachNew(TableId id) {
        synchronized (attached) {
            Set<Integer> taken = attached.computeIfAbsent(id, table -> new HashSet<>());
            int number = taken.stream().mapToInt(Integer::intValue).max().orElse(0);
            for (Catalog.Entry stored : catalog.storedTables(id)) {
                number = Math.max(number, stored.number());
            }
            taken.add(number + 1);
            return number + 1;
        }
    }

    /** Gives a stored table up. */
    public void detach(TableId id, int number) {
        synchronized (attached) {
            attached.get(id).remove(number);
        }
    }

    /** Closes the store, and ends the thread that works on it in the background. */
    public void close() {
        outage.close();
        mergeQueue.close();
        store.close();
    }
}
