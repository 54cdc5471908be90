package io.aiodb.cassandra.table;

import io.aiodb.cassandra.format.AutoSnapshot;
import io.aiodb.cassandra.format.SerializationHeaders;
import io.aiodb.cassandra.format.StoredTableStats;
import io.aiodb.store.StorageMode;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import io.aiodb.store.TableModes;
import io.aiodb.store.ValueKind;
import java.util.Locale;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.service.ClientWarn;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rows that a table has between two of its truncates: a table of the store. Each memtable has one. It is made at the
 * first write, so that tables which stay empty cost nothing, and its state is in the {@link Catalog}, so that a
 * truncate, a drop or a change of the schema is over or has not happened when the node starts again.
 */
public final class StoredTable {
    private static final Logger LOGGER = LoggerFactory.getLogger(StoredTable.class);

    private final OpenStore open;
    private final TableId id;
    private final int number;
    private final StoredTableStats stats;
    private final PurgeSchedule purges = new PurgeSchedule();
    private final UnfinishedUpdates unfinished;

    /** Null until the first write. */
    private volatile Table table;

    /** Null until the first write of this process. */
    private volatile LatestTimestamps latestTimestamps;

    private Catalog.State state;

    /** The snapshot that only this process knows of; null if there is none. */
    private AutoSnapshot unrecorded;

    /** What its table in the store has, or is to have when it is made. */
    private TableModes modes = TableModes.AUTO;

    /** Whose they are; null as long as nobody has said any. */
    private TableMetadata metadata;

    private StoredTable(
            OpenStore open,
            TableId id,
            int number,
            Catalog.State state,
            Table table,
            StoredTableStats stats,
            UnfinishedUpdates unfinished) {
        this.open = open;
        this.id = id;
        this.number = number;
        this.state = state;
        this.table = table;
        this.stats = stats;
        this.unfinished = unfinished;
    }

    /** A new one, of which nothing is stored yet. */
    public static StoredTable create(OpenStore open, TableId id) {
        StoredTableStats nothing = new StoredTableStats(new byte[0]);
        return new StoredTable(
                open, id, open.attachNew(id), Catalog.State.LIVE, null, nothing, new UnfinishedUpdates());
    }

    /**
     * The stored table of an entry of the catalog. Null if it was to be removed, or never was there; then its traces are
     * gone.
     */
    public static StoredTable load(OpenStore open, Catalog.Entry entry) {
        Table table = null;
        try {
            table = open.store().table(name(entry.id(), entry.number()));
        } catch (StoreException.NoSuchTable removed) {
            // The node ended between removing the table and removing the entry.
        }
        if (table == null || entry.state() == Catalog.State.CLEARED) {
            if (table != null) {
                table.drop();
            }
            open.catalog().remove(entry.id(), entry.number());
            return null;
        }
        StoredTableStats stats = new StoredTableStats(open.catalog().stats(entry.id(), entry.number()));
        return new StoredTable(
                open, entry.id(), entry.number(), entry.state(), table, stats, new UnfinishedUpdates());
    }

    /** The name of a table in the store. */
    static String name(TableId id, int number) {
        return id.toHexString() + "." + number;
    }

    /** The id of its table in Cassandra's schema. */
    public TableId id() {
        return id;
    }

    /** Its number among the stored tables of its table: later ones are greater. */
    public int number() {
        return number;
    }

    /** The store that it lies in. */
    public OpenStore open() {
        return open;
    }

    /** Bounds of all of its rows. */
    public StoredTableStats stats() {
        return stats;
    }

    /** When it was, and is to be, purged. */
    public PurgeSchedule purgeSchedule() {
        return purges;
    }

    /** Its updates that are there in part. */
    public UnfinishedUpdates unfinished() {
        return unfinished;
    }

    /** Of its rows, by stripe. */
    public LatestTimestamps latestTimestamps() {
        LatestTimestamps known = latestTimestamps;
        return known == null ? boundTimestamps() : known;
    }

    private synchronized LatestTimestamps boundTimestamps() {
        if (latestTimestamps == null) {
            latestTimestamps = new LatestTimestamps(stats.maxTimestamp());
        }
        return latestTimestamps;
    }

    /** The headers of its rows, which all stored tables of the table share. */
    public SerializationHeaders headers() {
        return open.headers(id);
    }

    /** The rows; null if there were never any. */
    public Table tableOrNull() {
        return table;
    }

    /** The rows, to be written to. */
    public Table table() {
        Table made = table;
        return made == null ? make() : made;
    }

    private synchronized Table make() {
        if (table == null) {
            // In this order: a stored table in the catalog that has no table is nothing.
            open.catalog().put(id, number, state);
            Table made = open.store().tableOrCreate(name(id, number), ValueKind.FRAMES);
            giveModes(made);
            table = made;
        }
        return table;
    }

    /**
     * Says what of the rows of a table memory keeps by preference, from now on. Nothing moves. What the store refuses is told to the
     * client and the log: the rows are as safe without.
     */
    public synchronized void setModes(TableModes wanted, TableMetadata of) {
        modes = wanted;
        metadata = of;
        if (table != null) {
            giveModes(table);
        }
    }

    private void giveModes(Table given) {
        if (metadata == null || !open.store().capabilities().storageModes()) {
            return;
        }
        try {
            given.setModes(modes);
        } catch (StoreException failure) {
            String warning = metadata + " keeps the storage modes that it had, and does not get keys: " + word(modes.keys())
                    + ", values: " + word(modes.values()) + ": " + failure.getMessage()
                    + ". They are tried again when the table is altered and when the node starts";
            LOGGER.warn(warning);
            ClientWarn.instance.warn(warning);
        }
    }

    private static String word(StorageMode mode) {
        return mode.name().toLowerCase(Locale.ROOT);
    }

    /**
     * Sets its state, by which a node decides about it when it starts. Durable when this returns.
     *
     * @throws StoreException if it could not be made durable; it is as it was
     */
    public synchronized void mark(Catalog.State next) {
        if (state != next) {
            if (table != null) {
                open.catalog().change(id, number, next);
            }
            state = next;
        }
    }

    /**
     * Says that it is to be written to a snapshot, also if the node stops now. Durable when it returns.
     *
     * @throws StoreException if it could not be made durable; its state is as it was
     */
    public synchronized void keep(AutoSnapshot kept) {
        open.catalog().keep(number, kept);
        state = Catalog.State.KEPT;
    }

    /** Says that this process is to write it to a snapshot. Its state says what becomes of it if the node stops before. */
    public synchronized void keepUnrecorded(AutoSnapshot kept) {
        unrecorded = kept;
    }

    /** The snapshot that it is to be written to. */
    public synchronized AutoSnapshot kept() {
        return unrecorded != null ? unrecorded : open.catalog().kept(id, number);
    }

    /** Whether its snapshot is written by this process or never. */
    public synchronized boolean isKeptUnrecorded() {
        return unrecorded != null;
    }

    /** Removes it for good. Where that fails half-way, it can be done again. */
    public synchronized void remove() {
        if (table != null) {
            try {
                table.drop();
            } catch (StoreException.NoSuchTable dropped) {
                // An attempt before has come as far as this.
            }
            open.catalog().remove(id, number);
        }
        open.detach(id, number);
    }

    /** The same table with other rows, to be read and not written: rows on their way to it. */
    public synchronized StoredTable withRows(Table rows) {
        return new StoredTable(open, id, number, state, rows, stats, unfinished);
    }

    /** Takes an update, whose latest timestamp is given, into the statistics, as must be done before it is written. */
    public void cover(PartitionUpdate update, long maxTimestamp) {
        stats.cover(update, maxTimestamp, wider -> open.catalog().putStats(id, number, wider));
    }

    /**
     * Takes all that the statistics of another stored table cover into those of this one, before its rows are written here.
     */
    public void coverAllOf(StoredTable other) {
        stats.cover(other.stats, wider -> open.catalog().putStats(id, number, wider));
    }

    /** Everything written before survives a power cut when this returns. */
    public void sync() {
        open.store().sync();
    }
}
