package io.aiodb.cassandra.table;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.cassandra.config.InheritingClass;

/**
 * The stores of kind {@code aiodb} that the configurations of a node name without memory of their own: they share the node's.
 */
final class ConfiguredStores {
    /** Stands for those of a configuration that names none. */
    private static final List<Path> DEFAULT_DIRECTORIES = List.of();

    private ConfiguredStores() {}

    /**
     * How many there are; configurations with the same directories, however these are written, name one.
     *
     * @param configurations those of {@code cassandra.yaml}; null if there are none
     */
    static int count(Map<String, InheritingClass> configurations) {
        Set<List<Path>> directories = new HashSet<>();
        for (InheritingClass configuration : configurations == null ? Set.<InheritingClass>of() : configurations.values()) {
            if (isStored(className(configuration, configurations))
                    && StoreConfiguration.AIODB.equals(
                            parameter(configuration, configurations, StoreConfiguration.STORE, StoreConfiguration.AIODB))
                    && parameter(configuration, configurations, StoreConfiguration.MEMORY, null) == null) {
                String given = parameter(configuration, configurations, StoreConfiguration.DIRECTORY, null);
                directories.add(given == null ? DEFAULT_DIRECTORIES : StoreConfiguration.directories(given));
            }
        }
        return directories.size();
    }

    /** Whether the rows of memtables of this class are in a store. A name without a package is one of Cassandra's own. */
    private static boolean isStored(String className) {
        try {
            return className != null
                    && StoredMemtable.class.isAssignableFrom(
                            Class.forName(className, false, ConfiguredStores.class.getClassLoader()));
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static String className(InheritingClass configuration, Map<String, InheritingClass> configurations) {
        InheritingClass found = configuration;
        // Cassandra has refused configurations that inherit each other in a circle, or will.
        for (int inherited = 0; found != null && inherited <= configurations.size(); inherited++) {
            if (found.class_name != null) {
                return found.class_name;
            }
            found = found.inherits == null ? null : configurations.get(found.inherits);
        }
        return null;
    }

    private static String parameter(
            InheritingClass configuration, Map<String, InheritingClass> configurations, String name, String fallback) {
        InheritingClass found = configuration;
        for (int inherited = 0; found != null && inherited <= configurations.size(); inherited++) {
            if (found.parameters != null && found.parameters.containsKey(name)) {
                return found.parameters.get(name);
            }
            found = found.inherits == null ? null : configurations.get(found.inherits);
        }
        return fallback;
    }
}
