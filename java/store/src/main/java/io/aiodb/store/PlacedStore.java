package io.aiodb.store;

import java.util.List;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * A store of {@link PlacedTable}s: what such stores do alike with names and tables.
 *
 * @param <T> its tables
 * @param <P> what says where a table's rows lie
 */
public abstract class PlacedStore<T extends PlacedTable<?, P>, P> implements Store {
    /** By their names. Changed by calls that run alone. */
    protected final Tables<T, P> tables = new Tables<>();

    private final Class<T> kind;

    protected PlacedStore(Class<T> kind) {
        this.kind = kind;
    }

    @Override
    public final Table createTable(String name, ValueKind values) {
        Objects.requireNonNull(values, "values");
        Names.check(name);
        return create(name);
    }

    @Override
    public final Table table(String name) {
        Objects.requireNonNull(name, "name");
        return look(() -> tables.find(name));
    }

    @Override
    public final List<String> tableNames() {
        return look(tables::names);
    }

    @Override
    public final void write(Batch batch, Durability durability) {
        Objects.requireNonNull(durability, "durability");
        batch.tables().forEach(this::own);
        apply(batch, durability);
    }

    /**
     * A table as one of this store.
     *
     * @throws StoreException.NoSuchTable if it is of another one
     */
    public final T own(Table table) {
        return Tables.own(table, this, kind);
    }

    /** Makes a table of a name that may be, in a call that runs alone. */
    protected abstract T create(String name);

    /** Writes a batch, all of whose tables are of this store. */
    protected abstract void apply(Batch batch, Durability durability);

    /** Looks into the tables in a call, unless the store was closed. */
    protected abstract <R> R look(Supplier<R> body);
}
