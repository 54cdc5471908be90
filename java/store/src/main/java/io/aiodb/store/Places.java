package io.aiodb.store;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;

/** Where the rows of each table lay when a snapshot was taken: {@link Tables#places}. */
public final class Places<T extends PlacedTable<?, P>, P> {
    private final Map<T, P> places = new HashMap<>();

    Places(Iterable<T> tables) {
        tables.forEach(table -> places.put(table, table.place()));
    }

    /**
     * Where the rows of a table lay.
     *
     * @throws StoreException.NoSuchTable if it was made or dropped since
     */
    public P of(T table) {
        table.place();
        P place = places.get(table);
        if (place == null) {
            throw new StoreException.NoSuchTable("the table `" + table.name() + "` is younger than the snapshot");
        }
        return place;
    }

    /** All of them. */
    public Collection<P> all() {
        return Collections.unmodifiableCollection(places.values());
    }
}
