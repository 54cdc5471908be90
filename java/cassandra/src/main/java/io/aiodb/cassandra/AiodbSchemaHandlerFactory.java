package io.aiodb.cassandra;

import io.aiodb.cassandra.integration.DurabilityWarning;
import io.aiodb.cassandra.integration.ReadCostReport;
import io.aiodb.cassandra.integration.SchemaValidator;
import io.aiodb.cassandra.integration.StorageServiceCleanup;
import io.aiodb.cassandra.integration.StoreSizeEstimates;
import io.aiodb.cassandra.lifecycle.MemtableMigration;
import io.aiodb.cassandra.table.WriteLogging;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import org.apache.cassandra.config.CassandraRelevantProperties;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.DefaultSchemaUpdateHandler;
import org.apache.cassandra.schema.Keyspaces;
import org.apache.cassandra.schema.OfflineSchemaUpdateHandler;
import org.apache.cassandra.schema.SchemaTransformation.SchemaTransformationResult;
import org.apache.cassandra.schema.SchemaTransformation;
import org.apache.cassandra.schema.SchemaUpdateHandler;
import org.apache.cassandra.schema.SchemaUpdateHandlerFactory;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Cassandra's handler of schema changes, which in addition refuses properties that tables with this memtable do not support.
 * It is named by {@code -Dcassandra.schema.update_handler_factory.class=io.aiodb.cassandra.AiodbSchemaHandlerFactory}.
 */
public final class AiodbSchemaHandlerFactory implements SchemaUpdateHandlerFactory {
    private final StoreSizeEstimates estimates;

    /** Whether the node's tables are there; before that, a server that is down ends it. */
    private final AtomicBoolean isStarted = new AtomicBoolean();

    /** Cassandra makes one through this, before it reads or writes anything. */
    public AiodbSchemaHandlerFactory() {
        AiodbQueryHandler.install();
        estimates = StoreSizeEstimates.replace();
    }

    @Override
    public SchemaUpdateHandler getSchemaUpdateHandler(
            boolean online, BiConsumer<SchemaTransformationResult, Boolean> updateSchemaCallback) {
        return online
                ? new Handler(
                        (result, drop) -> change(result, () -> updateSchemaCallback.accept(result, drop)), estimates, isStarted)
                : new OfflineSchemaUpdateHandler(updateSchemaCallback);
    }

    /**
     * Makes a change. Cassandra keeps prepared statements as they are when the memtable of their table changes
     * ({@code TableMetadata.changeAffectsPreparedStatements}), and their writes would go on to skip the commit log; so their
     * clients must prepare them again.
     */
    private void change(SchemaTransformationResult result, Runnable change) {
        if (isStarted.get()) {
            SchemaValidator.awaitServers(result.before.getKeyspaces(), result.after.getKeyspaces());
        }
        WriteLogging.changeSchema(change);
        boolean departs = result.diff.altered.stream()
                .flatMap(keyspace -> keyspace.tables.altered.stream())
                .anyMatch(table -> departs(table.before, table.after));
        if (departs) {
            QueryProcessor.clearPreparedStatements(true);
        }
    }

    private static boolean departs(TableMetadata before, TableMetadata after) {
        return before.params.memtable.factory() instanceof AiodbFactory left
                && !left.keepsRowsAs(after.params.memtable.factory());
    }

    /**
     * Refuses to go on if the node was started without it.
     *
     * @throws ConfigurationException that says what to start the node with
     */
    static void require() {
        String given = CassandraRelevantProperties.SCHEMA_UPDATE_HANDLER_FACTORY_CLASS.getString();
        String needed = AiodbSchemaHandlerFactory.class.getName();
        if (!needed.equals(given)) {
            throw new ConfigurationException("a memtable of class " + AiodbMemtable.class.getName()
                    + " needs the node to be started with -D"
                    + CassandraRelevantProperties.SCHEMA_UPDATE_HANDLER_FACTORY_CLASS.getKey() + "=" + needed
                    + (given == null ? "" : ", not " + given));
        }
    }

    private static final class Handler extends DefaultSchemaUpdateHandler {
        private final SchemaValidator validator = new SchemaValidator(AiodbCompactionStrategy.class);
        private final StoreSizeEstimates estimates;

        private final AtomicBoolean isStarted;

        Handler(
                BiConsumer<SchemaTransformationResult, Boolean> updateSchemaCallback,
                StoreSizeEstimates estimates,
                AtomicBoolean isStarted) {
            super(updateSchemaCallback);
            this.estimates = estimates;
            this.isStarted = isStarted;
        }

        /** Called when the tables are there, the commit log is replayed, and nobody is served yet. */
        @Override
        public synchronized void start() {
            ReadCostReport.schedule();
            MemtableMigration.takeOver();
            StorageServiceCleanup.install();
            DurabilityWarning.warn();
            estimates.schedule();
            isStarted.set(true);
            super.start();
        }

        @Override
        public synchronized SchemaTransformationResult apply(SchemaTransformation transformation, boolean local) {
            return super.apply(
                    new SchemaTransformation() {
                        @Override
                        public Keyspaces apply(Keyspaces schema) {
                            return validator.check(schema, transformation.apply(schema));
                        }

                        @Override
                        public Optional<Long> fixedTimestampMicros() {
                            return transformation.fixedTimestampMicros();
                        }
                    },
                    local);
        }
    }
}
