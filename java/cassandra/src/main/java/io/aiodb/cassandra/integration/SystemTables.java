package io.aiodb.cassandra.integration;

import io.aiodb.cassandra.table.StoreConfiguration;
import java.util.Map;
import org.apache.cassandra.config.InheritingClass;
import org.apache.cassandra.db.memtable.Memtable;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.schema.SchemaConstants;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Keeps the tables of Cassandra's own keyspaces out of stores. Before a store opens it asks them which node this is, and
 * an operator needs them to mend a node whose store does not open.
 */
public final class SystemTables {
    private static final String DEFAULT = "default";

    private SystemTables() {}

    /**
     * Refuses a default that puts tables into a store which name no memtable, as all of Cassandra's own.
     *
     * @param configurations those of {@code cassandra.yaml}; null if there are none
     * @param memtable the class of those whose rows are in a store
     * @throws ConfigurationException that says what to write instead
     */
    public static void requireOtherDefault(Map<String, InheritingClass> configurations, Class<? extends Memtable> memtable) {
        if (configurations == null) {
            return;
        }
        String name = DEFAULT;
        InheritingClass found = configurations.get(name);
        // Cassandra has refused configurations that inherit each other in a circle, or will (MemtableParams).
        for (int inherited = 0; found != null && found.class_name == null && inherited < configurations.size(); inherited++) {
            name = found.inherits;
            found = configurations.get(name);
        }
        if (found != null && memtable.getName().equals(found.class_name)) {
            String is = name.equals(DEFAULT) ? "is of class " + found.class_name : "inherits " + name;
            throw new ConfigurationException("cassandra.yaml: memtable: configurations: default: " + is + ", so the system tables"
                    + " would be in a store, which cannot open without them: write default: inherits: skiplist (or trie), give the"
                    + " store a configuration of its own, and name that one in each table: ALTER TABLE ... WITH memtable = '"
                    + (name.equals(DEFAULT) ? StoreConfiguration.AIODB : name) + "'");
        }
    }

    /** Whether a table is one of Cassandra's own. */
    static boolean isOne(String keyspace) {
        return SchemaConstants.isSystemKeyspace(keyspace);
    }

    /**
     * Refuses a system table that has come here by another road.
     *
     * @throws ConfigurationException that names it
     */
    public static void refuse(TableMetadata table) {
        if (isOne(table.keyspace)) {
            throw new ConfigurationException("the system table " + table + " cannot be in a store, which cannot open without such"
                    + " tables: give it another memtable than '" + table.params.memtable.configurationKey() + "'");
        }
    }
}
