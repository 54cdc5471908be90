package io.aiodb.cassandra.table;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.io.IOException;
import java.io.StringReader;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.cassandra.exceptions.ConfigurationException;

/**
 * How a store reaches its server: parameters of a memtable configuration beside those of {@link StoreConfiguration}. Those that
 * were used last lie in the store's directory, so that a node finds rows there also when no configuration names it any more.
 */
final class ServerParameters {
    private static final Set<String> COMMON = Set.of("host", "port", "user", "password_file", "timeout");

    /** Beside those, for each kind of store that has a server. */
    private static final Map<String, Set<String>> OWN = Map.of(
            "mysql", Set.of("database", "connections", "views", "access", "direct_port", "direct_secret_file"),
            "redis", Set.of("name", "history"));

    /** A file in the store's directory. */
    private static final String LAST = "SERVER";

    private static final String OWNER = "owner";

    private ServerParameters() {}

    /** Whether the rows of stores of a kind lie on a server. */
    static boolean areFor(String store) {
        return OWN.containsKey(store);
    }

    /** Those that stores of a kind have; none if it has no server. */
    static Set<String> names(String store) {
        Set<String> names = new TreeSet<>();
        if (areFor(store)) {
            names.addAll(COMMON);
            names.addAll(OWN.get(store));
        }
        return names;
    }

    /**
     * Takes them out of a configuration.
     *
     * @return as the store's provider names them
     */
    static Map<String, String> take(String store, Durability durability, Map<String, String> parameters) {
        if (parameters.containsKey("password")) {
            throw new ConfigurationException("memtable: password: cassandra.yaml is read by many, and shown by"
                    + " system_views.settings: write it into a file that only the user of Cassandra can read, and give"
                    + " password_file");
        }
        Map<String, String> taken = new HashMap<>();
        taken.put("durability", durability.name().toLowerCase(Locale.ROOT));
        for (String name : names(store)) {
            String value = parameters.remove(name);
            if (value != null) {
                switch (name) {
                    case "timeout" -> taken.put("timeout_millis", Long.toString(Quantities.milliseconds(name, value)));
                    case "history" -> taken.put("history_bytes", Long.toString(Quantities.bytes(name, value)));
                    default -> taken.put(name, value);
                }
            }
        }
        return taken;
    }

    /** The parameters of a store with the node that its directory must be of. */
    static Map<String, String> ofNode(Map<String, String> parameters, UUID node) {
        Map<String, String> all = new HashMap<>(parameters);
        all.put(OWNER, node.toString());
        return all;
    }

    /** Those that the store in a directory was opened with last, as its provider names them; none if it never was. */
    static Map<String, String> last(Path directory) {
        Properties found = new Properties();
        try {
            found.load(new StringReader(Files.readString(directory.resolve(LAST))));
        } catch (NoSuchFileException never) {
            return Map.of();
        } catch (IOException | IllegalArgumentException failure) {
            throw new ConfigurationException("cannot read " + directory.resolve(LAST) + ": " + failure, failure);
        }
        Map<String, String> last = new HashMap<>();
        found.stringPropertyNames().forEach(name -> last.put(name, found.getProperty(name)));
        return last;
    }

    /** Keeps those with which the store in a directory was opened. There is no password among them, only where it is. */
    static void keep(Path directory, Map<String, String> parameters) {
        if (parameters.equals(last(directory))) {
            return;
        }
        Properties kept = new Properties();
        kept.putAll(new TreeMap<>(parameters));
        StringWriter text = new StringWriter();
        try {
            kept.store(text, null);
            Path written = directory.resolve(LAST + ".new");
            Files.writeString(written, text.toString());
            Files.move(written, directory.resolve(LAST), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException failure) {
            throw new StoreException.Configuration("cannot write to " + directory + ": " + failure, failure);
        }
    }
}
