package io.aiodb.cassandra.table;

import io.aiodb.store.Durability;
import io.aiodb.store.StorageMode;
import io.aiodb.store.TableModes;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.exceptions.ConfigurationException;

/**
 * The parameters of a memtable configuration in {@code cassandra.yaml}. All have defaults:
 *
 * <ul>
 *   <li>{@code store}: {@code aiodb} (default), or another whose jars are in {@code lib/}: {@code rocksdb}, {@code lmdb},
 *       {@code mysql}, {@code redis}
 *   <li>{@code durability}: {@code interval} (default), as {@code commitlog_sync: periodic} is for other
 *       tables, or {@code sync}, which is as {@code batch}. A server that gives less is refused
 *   <li>{@code interval}: how much a power cut may take; a duration as elsewhere in {@code cassandra.yaml}, default 10s. Not
 *       for stores on a server, whose own configuration says it
 *   <li>{@code directory}: where the store lies; for {@code aiodb} it may be several, separated by commas. By default the
 *       directory {@code aiodb-stores} in each of the {@code data_file_directories} that there were when the store was made;
 *       for other stores in the first of them
 *   <li>{@code memory}: memory that the store may take in all, for all tables together, as {@code 2GiB}; default a quarter of what
 *       the machine has or the control group allows, divided among the stores that {@code cassandra.yaml} names without one. Only for
 *       {@code aiodb}
 *   <li>{@code cache}: a part of it for values written or read lately, as {@code 256MiB}; default none. Only for {@code aiodb}
 *   <li>{@code index}: of the rows of tables that are made or truncated from now on: {@code lsm} (default), sorted runs, whose
 *       inserts stay fast where the keys do not fit in memory; {@code lmdb}, for nodes whose memory has room for about 110 bytes a
 *       row. Only for {@code aiodb}
 *   <li>{@code inline_bytes}: rows and changes of rows of up to so many bytes, at most 1024, lie in the index too, so that a read
 *       of one reads the disk once at most; default 0. Only for {@code aiodb}, and not with {@code index: lmdb}
 *   <li>{@code block_compression}: of the index of tables that are made or truncated from now on, with the rows that lie in it:
 *       {@code none} (default), {@code lz4} or {@code zstd}. Only for {@code aiodb}, and not with {@code index: lmdb}
 *   <li>{@code keys}, {@code values}: what of its tables memory keeps by preference: {@code auto} (default), what is asked for; {@code
 *       memory}, all, as far as there is room; {@code disk}, nothing. Configurations of one directory may differ in it, and a table that is
 *       altered from one to another stays where it is. {@code keys: disk} not beside {@code values: memory} or {@code index: lmdb}.
 *       Only for {@code aiodb}
 *   <li>{@code max_open_files}: how many files of the store are open at a time, 8 or more; default what the node's limit of open
 *       files leaves after a quarter of it, 32 to 1,024, for everything else. Only for {@code aiodb}
 *   <li>{@code host}, {@code port}, {@code user}, {@code password_file} (a file whose first line is the password),
 *       {@code timeout} (how long an answer may take; a duration): the server of a store {@code mysql} or {@code redis}. The
 *       store's directory then has its identity only, and is needed to find the rows
 *   <li>{@code database}, {@code connections}, {@code views}, {@code access}, {@code direct_port},
 *       {@code direct_secret_file}: of {@code mysql}, as its provider has them
 *   <li>{@code name}, {@code history} (an amount): of {@code redis}, as its provider has them
 * </ul>
 *
 * @param store the kind of store
 * @param directory where it lies; the first, if it lies in several
 * @param durability of each write
 * @param storeParameters of the store, as its provider names them
 * @param modes of the tables; the store itself, and its catalog, have none
 */
public record StoreConfiguration(
        String store, Path directory, Durability durability, Map<String, String> storeParameters, TableModes modes) {
    static final String STORE = "store";
    private static final String DURABILITY = "durability";
    private static final String INTERVAL = "interval";
    static final String DIRECTORY = "directory";
    static final String MEMORY = "memory";
    private static final String CACHE = "cache";
    private static final String INDEX = "index";
    private static final String INLINE_BYTES = "inline_bytes";
    private static final String BLOCK_COMPRESSION = "block_compression";
    private static final String KEYS = "keys";
    private static final String VALUES = "values";
    private static final String MAX_OPEN_FILES = "max_open_files";

    private static final Set<String> BLOCK_COMPRESSIONS = Set.of("none", "lz4", "zstd");
    private static final int LEAST_OPEN_FILES = 8;
    private static final int MOST_INLINE_BYTES = 1024;

    /** The store of this project. */
    public static final String AIODB = "aiodb";

    /** Not the name of any keyspace, whose directories lie beside it. */
    private static final String DEFAULT_DIRECTORY = "aiodb-stores";

    /** A file in every directory of a store of this kind. */
    private static final String MADE = "STORE";

    /** Takes a copy of the parameters. */
    public StoreConfiguration {
        storeParameters = Map.copyOf(storeParameters);
    }

    /** One whose tables have no modes. */
    public StoreConfiguration(String store, Path directory, Durability durability, Map<String, String> storeParameters) {
        this(store, directory, durability, storeParameters, TableModes.AUTO);
    }

    /**
     * Takes the parameters out of a map, all of them.
     *
     * @throws ConfigurationException if one is not known or makes no sense
     */
    public static StoreConfiguration parse(Map<String, String> parameters) {
        String store = taken(parameters, STORE, AIODB);
        Durability durability = durability(taken(parameters, DURABILITY, "interval"));
        String directory = parameters.remove(DIRECTORY);
        Map<String, String> forStore = new HashMap<>();
        if (ServerParameters.areFor(store)) {
            forStore.putAll(ServerParameters.take(store, durability, parameters));
        }
        takeInterval(store, parameters, forStore);
        takeOfAiodb(store, parameters, forStore);
        TableModes modes = takeModes(store, parameters, "lmdb".equals(forStore.get("index")));
        if (!parameters.isEmpty()) {
            Set<String> known = new TreeSet<>(List.of(
                    STORE, DURABILITY, INTERVAL, DIRECTORY, MEMORY, CACHE, INDEX, INLINE_BYTES, BLOCK_COMPRESSION, MAX_OPEN_FILES));
            known.addAll(List.of(KEYS, VALUES));
            known.addAll(ServerParameters.names(store));
            throw new ConfigurationException("memtable: there is no parameter " + parameters.keySet() + " with store: " + store
                    + ": known are " + known);
        }
        List<Path> directories = directory == null ? defaultDirectories(store) : directories(directory);
        if (directories.size() > 1) {
            if (!store.equals(AIODB)) {
                throw Quantities.refused(DIRECTORY, directory, "give one: the store " + store + " lies in one directory");
            }
            forStore.put("also", join(directories.subList(1, directories.size())));
        }
        return new StoreConfiguration(store, directories.get(0), durability, forStore, modes);
    }

    private static void takeInterval(String store, Map<String, String> parameters, Map<String, String> forStore) {
        String interval = parameters.remove(INTERVAL);
        if (interval == null) {
            return;
        }
        if (ServerParameters.areFor(store)) {
            throw Quantities.refused(INTERVAL, interval, "leave it out: the server's own configuration says how often it syncs");
        }
        forStore.put("interval_millis", Long.toString(Quantities.milliseconds(INTERVAL, interval)));
    }

    private static void takeOfAiodb(String store, Map<String, String> parameters, Map<String, String> forStore) {
        String memory = parameters.remove(MEMORY);
        if (memory != null) {
            requireAiodb(store, MEMORY, memory, "has no such bound");
            forStore.put("memory_bytes", Long.toString(Quantities.bytes(MEMORY, memory)));
        }
        String cache = parameters.remove(CACHE);
        if (cache != null) {
            requireAiodb(store, CACHE, cache, "has none");
            forStore.put("cache_bytes", Long.toString(Quantities.bytes(CACHE, cache)));
            forStore.put("cache_writes", "yes");
        }
        String index = parameters.remove(INDEX);
        if (index != null) {
            requireAiodb(store, INDEX, index, "has one kind of index");
            forStore.put("index", index(index));
        }
        String inlineBytes = parameters.remove(INLINE_BYTES);
        if (inlineBytes != null) {
            requireAiodb(store, INLINE_BYTES, inlineBytes, "has no such bound");
            if ("lmdb".equals(forStore.get("index"))) {
                throw Quantities.refused(
                        INLINE_BYTES, inlineBytes, "leave it out, or leave out index: lmdb, which has no rows");
            }
            forStore.put("inline_bytes", Integer.toString(inlineBytes(inlineBytes)));
        }
        String blockCompression = parameters.remove(BLOCK_COMPRESSION);
        if (blockCompression != null) {
            requireAiodb(store, BLOCK_COMPRESSION, blockCompression, "has no such choice");
            if ("lmdb".equals(forStore.get("index"))) {
                throw Quantities.refused(
                        BLOCK_COMPRESSION, blockCompression, "leave it out, or leave out index: lmdb, which is not compressed");
            }
            forStore.put("block_compression", blockCompression(blockCompression));
        }
        String maxOpenFiles = parameters.remove(MAX_OPEN_FILES);
        if (maxOpenFiles != null) {
            requireAiodb(store, MAX_OPEN_FILES, maxOpenFiles, "has no such bound");
            forStore.put("max_open_files", Integer.toString(files(maxOpenFiles)));
        }
    }

    private static TableModes takeModes(String store, Map<String, String> parameters, boolean isLmdb) {
        StorageMode keys = takeMode(store, KEYS, parameters);
        StorageMode values = takeMode(store, VALUES, parameters);
        if (keys == StorageMode.DISK && values == StorageMode.MEMORY) {
            throw Quantities.refused(
                    KEYS,
                    "disk",
                    "give memory or auto, or leave out values: memory: a read would read the disk for the key before it knows of a row in"
                            + " memory");
        }
        if (keys == StorageMode.DISK && isLmdb) {
            throw Quantities.refused(
                    KEYS, "disk", "leave it out, or leave out index: lmdb, of which the system's page cache keeps what it has room for");
        }
        return new TableModes(keys, values);
    }

    private static StorageMode takeMode(String store, String name, Map<String, String> parameters) {
        String value = parameters.remove(name);
        if (value == null) {
            return StorageMode.AUTO;
        }
        requireAiodb(store, name, value, "has no such choice");
        return switch (value.strip().toLowerCase(Locale.ROOT)) {
            case "auto" -> StorageMode.AUTO;
            case "memory" -> StorageMode.MEMORY;
            case "disk" -> StorageMode.DISK;
            default -> throw Quantities.refused(name, value, "give auto, memory or disk");
        };
    }

    private static void requireAiodb(String store, String name, String value, String why) {
        if (!store.equals(AIODB)) {
            throw Quantities.refused(name, value, "leave it out: the store " + store + " " + why);
        }
    }

    /** Whether tables with another configuration have their rows where they are with this one: both differ in modes at most. */
    public boolean keepsRowsAs(StoreConfiguration other) {
        return equals(new StoreConfiguration(other.store, other.directory, other.durability, other.storeParameters, modes));
    }

    /** Whether the rows lie on a server, not in the directory. */
    public boolean isOnServer() {
        return ServerParameters.areFor(store);
    }

    /**
     * The parameters of the store as it is opened by a node: one on a server is refused, untouched, if it is another's. One of kind {@code
     * aiodb} shares the node's memory with the others.
     */
    public Map<String, String> storeParameters(UUID node) {
        if (isOnServer()) {
            return ServerParameters.ofNode(storeParameters, node);
        }
        int stores = ConfiguredStores.count(DatabaseDescriptor.getMemtableConfigurations());
        if (!store.equals(AIODB) || stores < 2) {
            return storeParameters;
        }
        Map<String, String> sharing = new HashMap<>(storeParameters);
        sharing.put("memory_shared_by", Integer.toString(stores));
        return sharing;
    }

    /** Takes note of how the store was reached, for {@link #ofDefaultDirectories}. */
    public void keep() {
        if (isOnServer()) {
            ServerParameters.keep(directory, storeParameters);
        }
    }

    /** For a store whose configuration is not known any more: it lies in the default directories. */
    public static StoreConfiguration ofDefaultDirectories(String store) {
        StoreConfiguration found = parse(new HashMap<>(Map.of(STORE, store)));
        Map<String, String> last = ServerParameters.last(found.directory);
        return last.isEmpty() ? found : new StoreConfiguration(store, found.directory, found.durability, last);
    }

    /** The kinds of the stores that lie in the default directories, whether they are configured or not. */
    public static Set<String> kindsInDefaultDirectories() {
        Set<String> kinds = new TreeSet<>();
        for (String location : DatabaseDescriptor.getAllDataFileLocations()) {
            File[] stores = new File(location, DEFAULT_DIRECTORY).listFiles(File::isDirectory);
            for (File store : stores == null ? new File[0] : stores) {
                kinds.add(store.getName());
            }
        }
        return kinds;
    }

    private static String taken(Map<String, String> parameters, String name, String fallback) {
        String value = parameters.remove(name);
        return value == null ? fallback : value;
    }

    private static Durability durability(String value) {
        return switch (value.toLowerCase(Locale.ROOT)) {
            case "interval" -> Durability.INTERVAL;
            case "sync" -> Durability.SYNC;
            default -> throw Quantities.refused(DURABILITY, value, "give interval or sync");
        };
    }

    private static String index(String value) {
        String index = value.strip().toLowerCase(Locale.ROOT);
        if (index.equals("lmdb") || index.equals("lsm")) {
            return index;
        }
        throw Quantities.refused(INDEX, value, "give lmdb or lsm");
    }

    private static int inlineBytes(String value) {
        return Quantities.number(value, 0, MOST_INLINE_BYTES)
                .orElseThrow(() -> Quantities.refused(INLINE_BYTES, value, "give a number, " + MOST_INLINE_BYTES + " or less"));
    }

    private static String blockCompression(String value) {
        String compression = value.strip().toLowerCase(Locale.ROOT);
        if (BLOCK_COMPRESSIONS.contains(compression)) {
            return compression;
        }
        throw Quantities.refused(BLOCK_COMPRESSION, value, "give none, lz4 or zstd");
    }

    private static int files(String value) {
        return Quantities.number(value, LEAST_OPEN_FILES, Integer.MAX_VALUE)
                .orElseThrow(() -> Quantities.refused(MAX_OPEN_FILES, value, "give a number, " + LEAST_OPEN_FILES + " or more"));
    }

    static List<Path> directories(String given) {
        return Arrays.stream(given.split(","))
                .map(directory -> Path.of(directory.strip()).toAbsolutePath().normalize())
                .toList();
    }

    /** How many directories a store has is fixed when it is made, so a data directory that is added later is not one. */
    private static List<Path> defaultDirectories(String store) {
        List<Path> all = Arrays.stream(DatabaseDescriptor.getAllDataFileLocations())
                .map(location -> Path.of(location, DEFAULT_DIRECTORY, store).toAbsolutePath().normalize())
                .toList();
        if (!store.equals(AIODB)) {
            return all.subList(0, 1);
        }
        List<Path> made = all.stream()
                .filter(directory -> Files.exists(directory.resolve(MADE)))
                .toList();
        return made.isEmpty() ? all : made;
    }

    private static String join(List<Path> directories) {
        return directories.stream().map(Path::toString).collect(Collectors.joining(","));
    }
}
