package io.aiodb.store;

import java.util.List;
import java.util.Objects;
import java.util.TreeMap;
import java.util.function.Supplier;

/** The tables of a store whose library has none with names. It is changed by calls that run alone. */
public final class Tables<T extends Table> {
    private final TreeMap<String, T> byName = new TreeMap<>();

    /** Adds a table that was found when the store was opened. */
    public void add(T table) {
        byName.put(table.name(), table);
    }

    /** Makes a table and adds it, unless there is one of this name. */
    public T create(String name, Supplier<T> made) {
        if (byName.containsKey(name)) {
            throw new StoreException.TableExists("the table `" + name + "` exists already");
        }
        T table = made.get();
        byName.put(name, table);
        return table;
    }

    /** The table of this name. */
    public T find(String name) {
        T table = byName.get(Objects.requireNonNull(name, "name"));
        if (table == null) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`");
        }
        return table;
    }

    /** Forgets a table that was dropped. */
    public void remove(T table) {
        byName.remove(table.name());
    }

    /** The names, in order. */
    public List<String> names() {
        return List.copyOf(byName.keySet());
    }

    /** The tables, in the order of their names. */
    public List<T> all() {
        return List.copyOf(byName.values());
    }

    /** A table as one of this kind, if it is of this store. */
    public static <T extends Table> T own(Table table, Store store, Class<T> kind) {
        if (kind.isInstance(table) && table.store() == store) {
            return kind.cast(table);
        }
        throw new StoreException.NoSuchTable("the table " + table.name() + " is of another store");
    }
}
