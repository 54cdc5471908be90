package io.aiodb.store;

import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.BiFunction;
import java.util.function.Supplier;

/** The tables of a store whose library has none with names. One call at a time changes it, while others read. */
public final class Tables<T extends PlacedTable<?, P>, P> {
    private final NavigableMap<String, T> byName = new ConcurrentSkipListMap<>();

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

    /** Forgets a table that was dropped, whose handles say so from then on. */
    public void remove(T table) {
        table.setPlace(null);
        byName.remove(table.name());
    }

    /** Learns where the rows of which tables lie now: those that are missing were dropped. */
    public void update(Map<String, P> found, BiFunction<String, P, T> made) {
        byName.values().stream().filter(table -> !found.containsKey(table.name())).forEach(this::remove);
        found.forEach((name, place) ->
                byName.computeIfAbsent(name, absent -> made.apply(name, place)).setPlace(place));
    }

    /** The names, in order. */
    public List<String> names() {
        return List.copyOf(byName.keySet());
    }

    /** The tables, in the order of their names. */
    public List<T> all() {
        return List.copyOf(byName.values());
    }

    /** Where the rows of all tables lie now. */
    public Places<T, P> places() {
        return new Places<>(byName.values());
    }

    /** A table as one of this kind, if it is of this store. */
    public static <T extends Table> T own(Table table, Store store, Class<T> kind) {
        if (kind.isInstance(table) && table.store() == store) {
            return kind.cast(table);
        }
        throw new StoreException.NoSuchTable("the table " + table.name() + " is of another store");
    }
}
