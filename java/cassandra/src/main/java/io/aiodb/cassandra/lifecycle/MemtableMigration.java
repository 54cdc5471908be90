package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.read.PartitionScan;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.BoundedUpdates;
import io.aiodb.cassandra.write.LargeUpdate;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DataRange;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.MemtableParams;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rows in the stores of this node whose table has another memtable by now: the node ended while they were being written to
 * SSTables, or its {@code cassandra.yaml} was changed. They are written again, as updates, before the node serves anybody.
 */
public final class MemtableMigration {
    private static final Logger LOGGER = LoggerFactory.getLogger(MemtableMigration.class);

    private MemtableMigration() {}

    /** Takes all of them to where their tables are now. Safe to be done again if it ends half-way. */
    public static void takeOver() {
        Map<Path, StoreConfiguration> stores = new LinkedHashMap<>();
        for (String name : MemtableParams.knownDefinitions()) {
            StoreConfiguration configuration = configuration(name);
            if (configuration != null) {
                stores.put(configuration.directory(), configuration);
            }
        }
        // Stores that are left where they lie by default, though no configuration names them any more.
        for (String kind : StoreConfiguration.kindsInDefaultDirectories()) {
            StoreConfiguration configuration = StoreConfiguration.ofDefaultDirectories(kind);
            stores.putIfAbsent(configuration.directory(), configuration);
        }
        stores.values().stream()
                .filter(configuration -> Files.isDirectory(configuration.directory()))
                .map(OpenStores::of)
                .forEach(MemtableMigration::takeOver);
    }

    static void takeOver(OpenStore open) {
        open.catalog().storedTables().forEach(entry -> takeOver(open, entry));
    }

    /** Null if the rows are not in a store, or nobody can use the configuration, which a statement that names it is told. */
    private static StoreConfiguration configuration(String name) {
        try {
            return StoredMemtable.Factory.configurationOf(MemtableParams.get(name).factory());
        } catch (ConfigurationException broken) {
            LOGGER.warn("The memtable configuration {} cannot be used: {}", name, broken.getMessage());
            return null;
        }
    }

    private static void takeOver(OpenStore open, Catalog.Entry entry) {
        if (open.isAttached(entry.id(), entry.number())) {
            return;
        }
        if (entry.state() == Catalog.State.KEPT) {
            keep(open, entry);
            return;
        }
        TableMetadata table = Schema.instance.getTableMetadata(entry.id());
        if (table == null && open.catalog().storedTables(entry.id()).stream().anyMatch(MemtableMigration::hasRows)) {
            LOGGER.warn("There are rows of a table {} that the schema does not know; they are left as they are", entry.id());
            return;
        }
        StoredTable storedTable = StoredTables.attach(open, entry.id());
        if (storedTable.tableOrNull() != null) {
            LOGGER.info("Moving the rows of {} to where its memtable keeps them now", table);
            move(storedTable, table);
        }
        storedTable.remove();
    }

    private static boolean hasRows(Catalog.Entry entry) {
        return entry.state() == Catalog.State.LIVE || entry.state() == Catalog.State.FLUSHING;
    }

    /** Goes on with the snapshot of a table that was truncated or dropped. */
    private static void keep(OpenStore open, Catalog.Entry entry) {
        StoredTable storedTable = StoredTables.attachKept(open, entry);
        if (storedTable != null) {
            AutoSnapshotWriter.write(storedTable);
        }
    }

    /**
     * Writes the rows again. The commit log need not have them, since they stay here until they are in SSTables, or in
     * another store; and it takes no row that is larger than a mutation may be, which many updates can have made.
     */
    private static void move(StoredTable storedTable, TableMetadata table) {
        Keyspace keyspace = Keyspace.open(table.keyspace);
        LargeUpdate.forEachUnfinished(storedTable, rest -> apply(rest, table, keyspace));
        apply(storedTable, table, keyspace);
        ColumnFamilyStore cfs = keyspace.getColumnFamilyStore(table.id);
        cfs.forceBlockingFlush(ColumnFamilyStore.FlushReason.INTERNALLY_FORCED);
        cfs.concatWithIndexes().forEach(MemtableMigration::requireFlushed);
        // What is to go to views waits there.
        Keyspace.open(SchemaConstants.SYSTEM_KEYSPACE_NAME)
                .getColumnFamilyStore(SystemKeyspace.BATCHES)
                .forceBlockingFlush(ColumnFamilyStore.FlushReason.INTERNALLY_FORCED);
    }

    /**
     * Indexes and views are told as by a replay of the commit log ({@code CommitLogReplayer}): those that were made while the rows
     * were still here have none of them.
     */
    private static void apply(StoredTable rows, TableMetadata table, Keyspace keyspace) {
        DataRange all = DataRange.allData(table.partitioner);
        PartitionScan partitions = new PartitionScan(rows, table, ColumnFilter.all(table), all);
        try (BoundedUpdates updates = new BoundedUpdates(partitions)) {
            while (updates.hasNext()) {
                keyspace.apply(new Mutation(updates.next()), false, true, false);
            }
        }
    }

    /** Cassandra may have flushed some of it before, for want of memory; a flush that failed is not tried again. */
    private static void requireFlushed(ColumnFamilyStore cfs) {
        if (!cfs.getTracker().getView().flushingMemtables.stream().allMatch(Memtable::isClean)) {
            throw new IllegalStateException("rows of " + cfs.metadata() + " could not be flushed, see above: they are still in the"
                    + " store, and are moved when the node starts again");
        }
    }
}
