package io.aiodb.ycsb;

import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;

/**
 * YCSB over a {@link Store}: in this process, or on a server through what this process has of it. A table is a table, a record a row with all fields in its value, see
 * {@link Record}. An update of some fields reads the row and writes it again, one thread at a time for each key. Properties:
 *
 * <ul>
 *   <li>{@code store}: the kind, {@code aiodb}, {@code rocksdb}, {@code lmdb}, {@code mysql} or {@code redis}
 *   <li>{@code store.directory}: where it lies, or what is known of it here if its rows lie on a server; made if it is missing
 *   <li>{@code store.durability}: what an acknowledged write has survived: {@code sync} (default), {@code interval} or
 *       {@code none}; of a server also the least that it must give
 *   <li>every other {@code store.NAME}: the parameter NAME of that kind of store
 *   <li>{@code modes_at}: the storage modes of the table, keys and values, from given seconds of the run on, as {@code
 *       0:memory/memory,60:memory/disk}; see {@link Changes}. By default they are left as they are
 * </ul>
 */
public final class StoreClient extends DB {
    static final String KIND = "store";

    private static final String PREFIX = "store.";
    private static final String DIRECTORY = PREFIX + "directory";
    private static final String DURABILITY = PREFIX + "durability";
    private static final String MODES_AT = "modes_at";
    private static final int LOCKS = 1024;

    /** Kinds of stores on servers, which are refused where they give less than a parameter asks for. */
    private static final Set<String> ON_SERVERS = Set.of("mysql", "redis");

    /** The store, and what updates of parts of a row hold: one lock for many keys. */
    private record Opened(Store store, Object[] locks) implements AutoCloseable {
        @Override
        public void close() {
            store.close();
        }
    }

    private final Shared shared = Shared.ofThisProcess();
    private final Map<String, Table> tables = new HashMap<>();
    private Opened opened;
    private Durability durability;
    private Record record;

    @Override
    public void init() {
        Properties properties = getProperties();
        String kind = properties.getProperty(KIND);
        try {
            record = new Record(properties);
            durability = durability(properties);
            opened = shared.open(Opened.class, () -> open(kind, properties));
            shared.open(Changes.class, () -> Changes.begin(MODES_AT, properties, new Modes(opened.store, properties)));
        } catch (Exception failure) {
            shared.refuse("open the store", failure);
        }
    }

    private static Opened open(String kind, Properties properties) {
        String directory = properties.getProperty(DIRECTORY);
        if (kind == null || directory == null) {
            throw new StoreException.Configuration("give -p " + DIRECTORY + "=DIRECTORY, where the store lies or is made");
        }
        Map<String, String> parameters = new HashMap<>();
        for (String name : properties.stringPropertyNames()) {
            boolean passedOn = !name.equals(DURABILITY) || ON_SERVERS.contains(kind);
            if (name.startsWith(PREFIX) && !name.equals(DIRECTORY) && passedOn) {
                parameters.put(name.substring(PREFIX.length()), properties.getProperty(name));
            }
        }
        Object[] locks = new Object[LOCKS];
        Arrays.setAll(locks, number -> new Object());
        return new Opened(Stores.open(kind, Path.of(directory), parameters), locks);
    }

    private static Durability durability(Properties properties) {
        String name = properties.getProperty(DURABILITY, "sync");
        for (Durability durability : Durability.values()) {
            if (durability.name().toLowerCase(Locale.ROOT).equals(name)) {
                return durability;
            }
        }
        throw new StoreException.Configuration(DURABILITY + " = " + name + ": give sync, interval or none");
    }

    @Override
    public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
        try {
            byte[] value = table(table).get(bytes(key));
            if (value == null) {
                return Status.NOT_FOUND;
            }
            record.decode(value, fields, result);
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the read of", key, failure);
        }
    }

    @Override
    public Status scan(
            String table, String startKey, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
        try (Rows rows = table(table).scan(Range.all().from(bytes(startKey)).limit(count))) {
            while (rows.next()) {
                ByteBuffer value = rows.value();
                byte[] copy = new byte[value.remaining()];
                value.get(copy);
                result.add(record.decoded(copy, fields));
            }
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the scan from", startKey, failure);
        }
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
        try {
            table(table).put(bytes(key), record.encode(values), durability);
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the insert of", key, failure);
        }
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
        if (record.isWhole(values)) {
            return insert(table, key, values);
        }
        byte[] bytes = bytes(key);
        try {
            synchronized (opened.locks[Math.floorMod(key.hashCode(), LOCKS)]) {
                byte[] value = table(table).get(bytes);
                if (value == null) {
                    return Status.NOT_FOUND;
                }
                table(table).put(bytes, record.update(value, values), durability);
            }
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the update of", key, failure);
        }
    }

    @Override
    public Status delete(String table, String key) {
        try {
            table(table).delete(bytes(key), durability);
            return Status.OK;
        } catch (RuntimeException failure) {
            return shared.failed("the delete of", key, failure);
        }
    }

    private Table table(String name) {
        return tables.computeIfAbsent(name, missing -> opened.store.tableOrCreate(missing));
    }

    private static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }
}
