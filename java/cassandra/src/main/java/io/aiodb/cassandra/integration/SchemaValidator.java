package io.aiodb.cassandra.integration;

import com.google.common.util.concurrent.Uninterruptibles;
import io.aiodb.cassandra.lifecycle.OpenStores;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.Keyspaces;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableParams;
import org.apache.cassandra.schema.ViewMetadata;
import org.apache.cassandra.service.ClientWarn;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks changes of the schema: refuses those that tables in stores do not support, and gives such tables their compaction
 * class.
 */
public final class SchemaValidator {
    private static final Logger LOGGER = LoggerFactory.getLogger(SchemaValidator.class);

    private static final int WAIT_SECONDS = 1;
    private static final int WAITS_PER_WARNING = 60;

    private final Class<? extends AbstractCompactionStrategy> compaction;

    /** @param compaction the class that these tables need; it has no options */
    public SchemaValidator(Class<? extends AbstractCompactionStrategy> compaction) {
        this.compaction = compaction;
    }

    /**
     * The schema that a change leads to, with the compaction class that these tables need.
     *
     * @throws InvalidRequestException if there would be something that they do not support
     * @throws ConfigurationException if the store of one cannot be opened, or its server does
     *     not answer
     */
    public Keyspaces check(Keyspaces before, Keyspaces after) {
        requireServers(before, after);
        Keyspaces checked = after;
        for (KeyspaceMetadata keyspace : after) {
            if (keyspace == before.getNullable(keyspace.name)) {
                continue;
            }
            KeyspaceMetadata changed = check(keyspace);
            if (changed != keyspace) {
                checked = checked.withAddedOrReplaced(changed);
            }
        }
        return checked;
    }

    /**
     * Refuses to go on if the server of a table that a change makes, changes or drops does not answer: the change would be
     * half done, and the schema has it nevertheless.
     */
    private static void requireServers(Keyspaces before, Keyspaces after) {
        Map<TableId, TableMetadata> earlier = tables(before);
        Map<TableId, TableMetadata> later = tables(after);
        Set<StoreConfiguration> needed = new HashSet<>();
        earlier.forEach((id, table) -> addIfChanged(table, later.get(id), needed));
        later.forEach((id, table) -> addIfChanged(table, earlier.get(id), needed));
        needed.forEach(OpenStores::requireAnswer);
    }

    private static void addIfChanged(TableMetadata table, TableMetadata other, Set<StoreConfiguration> needed) {
        StoreConfiguration configuration =
                StoredMemtable.Factory.configurationOf(table.params.memtable.factory());
        if (configuration != null && configuration.isOnServer() && !table.equals(other)) {
            needed.add(configuration);
        }
    }

    /**
     * Waits until {@link #requireServers} would let a change pass that another node has made, so that it cannot be refused
     * here.
     */
    public static void awaitServers(Keyspaces before, Keyspaces after) {
        for (int waits = 0; ; waits++) {
            try {
                requireServers(before, after);
                return;
            } catch (ConfigurationException down) {
                if (waits % WAITS_PER_WARNING == 0) {
                    LOGGER.warn("A change of the schema waits: {}", down.getMessage());
                }
                Uninterruptibles.sleepUninterruptibly(WAIT_SECONDS, TimeUnit.SECONDS);
            }
        }
    }

    private static Map<TableId, TableMetadata> tables(Keyspaces keyspaces) {
        Map<TableId, TableMetadata> tables = new HashMap<>();
        keyspaces.forEach(keyspace -> keyspace.tables.forEach(table -> tables.put(table.id, table)));
        return tables;
    }

    private KeyspaceMetadata check(KeyspaceMetadata keyspace) {
        KeyspaceMetadata checked = keyspace;
        for (TableMetadata table : keyspace.tables) {
            StoreConfiguration configuration =
                    StoredMemtable.Factory.configurationOf(table.params.memtable.factory());
            if (configuration == null) {
                continue;
            }
            refuse(table, keyspace);
            // An error of the store is thrown now, and not when the table is half there.
            OpenStores.of(configuration);
            if (table.params.compaction.klass() != compaction) {
                checked = checked.withSwapped(checked.tables.withSwapped(withCompaction(table)));
            }
        }
        return checked;
    }

    private static void refuse(TableMetadata table, KeyspaceMetadata keyspace) {
        String memtable = table.params.memtable.configurationKey();
        if (SystemTables.isOne(keyspace.name)) {
            throw refusal(table, memtable, "system tables", keyspace.name);
        }
        if (!table.indexes.isEmpty()) {
            throw refusal(table, memtable, "indexes", table.indexes.iterator().next().name);
        }
        for (ViewMetadata view : keyspace.views) {
            if (view.baseTableId.equals(table.id)) {
                throw refusal(table, memtable, "materialized views", view.name());
            }
        }
        if (table.params.cdc) {
            throw refusal(table, memtable, "change data capture", "cdc = true");
        }
    }

    private static InvalidRequestException refusal(TableMetadata table, String memtable, String what, String which) {
        return new InvalidRequestException(String.format(
                "%s has memtable = '%s', which does not support %s (%s): do without, or use another memtable",
                table, memtable, what, which));
    }

    private TableMetadata withCompaction(TableMetadata table) {
        CompactionParams given = table.params.compaction;
        if (!given.equals(CompactionParams.DEFAULT)) {
            ClientWarn.instance.warn(String.format(
                    "%s: its compaction was %s and is now %s, as its memtable needs",
                    table, given.klass().getSimpleName(), compaction.getSimpleName()));
        }
        TableParams params = table.params
                .unbuild()
                .compaction(CompactionParams.create(compaction, Map.of()))
                .build();
        return table.unbuild().params(params).build();
    }
}
