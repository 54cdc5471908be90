package io.aiodb.store;

/**
 * A table that knows where its rows lie, for stores whose library has no tables with names, or none that can be emptied at
 * once: a truncate gives the table another place.
 *
 * @param <S> its store
 * @param <P> what says where its rows lie
 */
public abstract class PlacedTable<S extends Store, P> implements Table {
    protected final S store;
    private final String name;

    /** Null once the table was dropped. */
    private volatile P place;

    protected PlacedTable(S store, String name, P place) {
        this.store = store;
        this.name = name;
        this.place = place;
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final S store() {
        return store;
    }

    /**
     * Where its rows lie now.
     *
     * @throws StoreException.NoSuchTable if it was dropped
     */
    public final P place() {
        P now = place;
        if (now == null) {
            throw new StoreException.NoSuchTable("there is no table `" + name + "`: it was dropped");
        }
        return now;
    }

    /** Says where its rows lie from now on; null if it was dropped. */
    protected final void setPlace(P place) {
        this.place = place;
    }
}
