package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.lifecycle.OpenStores;
import io.aiodb.cassandra.table.StoreConfiguration;
import io.aiodb.cassandra.table.StoredMemtable;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.Keyspaces;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableParams;
import org.apache.cassandra.schema.ViewMetadata;
import org.apache.cassandra.service.ClientWarn;

/**
 * Checks changes of the schema: refuses those that tables in stores do not support, and gives such tables their compaction
 * class.
 */
public final class SchemaValidator {
    private final Class<? extends AbstractCompactionStrategy> compaction;

    /** @param compaction the class that these tables need; it has no options */
    public SchemaValidator(Class<? extends AbstractCompactionStrategy> compaction) {
        this.compaction = compaction;
    }

    /**
     * The schema that a change leads to, with the compaction class that these tables need.
     *
     * @throws InvalidRequestException if there would be something that they do not support
     * @throws org.apache.cassandra.exceptions.ConfigurationException if the store of one cannot be opened, or its server does
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

    /** A change that meets a server which is down would be half done, and the schema has it nevertheless. */
    private static void requireServers(Keyspaces before, Keyspaces after) {
        Map<TableId, TableMetadata> earlier = tables(before);
        Map<TableId, TableMetadata> later = tables(after);
        Set<StoreConfiguration> needed = new HashSet<>();
        earlier.forEach((id, table) -> {
            if (!table.equals(later.get(id))) {
                needed.add(StoredMemtable.Factory.configurationOf(table.params.memtable.factory()));
            }
        });
        later.forEach((id, table) -> {
            if (!table.equals(earlier.get(id))) {
                needed.add(StoredMemtable.Factory.configurationOf(table.params.memtable.factory()));
            }
        });
        for (StoreConfiguration configuration : needed) {
            if (configuration != null && configuration.isOnServer()) {
                OpenStores.requireAnswer(configuration);
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
