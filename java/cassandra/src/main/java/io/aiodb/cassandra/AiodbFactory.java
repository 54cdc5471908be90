package io.aiodb.cassandra;

import io.aiodb.cassandra.integration.StoreMetrics;
import io.aiodb.cassandra.integration.SystemTables;
import io.aiodb.cassandra.lifecycle.OpenStores;
import io.aiodb.cassandra.lifecycle.StoredTables;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.table.WriteLogging;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.cassandra.db.commitlog.CommitLogPosition;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Makes the memtables of one configuration.
 *
 * @param configuration of all of them; factories are equal if theirs are
 */
record AiodbFactory(StoreConfiguration configuration) implements StoredMemtable.Factory {
    private static final String VERSION = "5.0.9";

    @Override
    public Memtable create(
            AtomicReference<CommitLogPosition> commitLogLowerBound, TableMetadataRef metadata, Memtable.Owner owner) {
        SystemTables.refuse(metadata.get());
        StoredTable storedTable = StoredTables.attach(OpenStores.of(configuration), metadata.id);
        storedTable.setModes(configuration.modes(), metadata.get());
        return new AiodbMemtable(this, storedTable, commitLogLowerBound, metadata, owner);
    }

    /** Whether the memtables of another factory have their rows where those of this one have them. */
    boolean keepsRowsAs(Memtable.Factory other) {
        StoreConfiguration others = StoredMemtable.Factory.configurationOf(other);
        return others != null && configuration.keepsRowsAs(others);
    }

    /**
     * Refuses to go on in a node that it is not made for. Another version of Cassandra may call a memtable in other ways,
     * and lose rows.
     *
     * @throws ConfigurationException that says what is missing
     */
    static void requireNode() {
        AiodbSchemaHandlerFactory.require();
        String version = FBUtilities.getReleaseVersionString();
        if (!version.equals(VERSION)) {
            throw new ConfigurationException("this aiodb was made for Apache Cassandra " + VERSION + ", and this is "
                    + version + ": take the jar for that version");
        }
    }

    /** The store has a log of its own, but see {@link WriteLogging}. */
    @Override
    public boolean writesShouldSkipCommitLog() {
        return !WriteLogging.isOn();
    }

    /**
     * False, though they are: otherwise Cassandra would not replay the table's records in the commit log from before it came
     * here ({@code CommitLogReplayer.construct}), and forget them ({@code AbstractCommitLogSegmentManager.flushDataFrom}).
     */
    @Override
    public boolean writesAreDurable() {
        return false;
    }

    @Override
    public TableMetrics.ReleasableMetric createMemtableMetrics(TableMetadataRef metadata) {
        return new StoreMetrics(OpenStores.of(configuration), metadata);
    }

    @Override
    public boolean streamToMemtable() {
        return true;
    }

    @Override
    public boolean streamFromMemtable() {
        return true;
    }
}
