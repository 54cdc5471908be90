package io.aiodb.cassandra;

import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import io.aiodb.store.ValueKind;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.schema.TableId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rows that a table has between two of its truncates: a table of the store. Each memtable has one. It is made at the
 * first write, so that tables which stay empty cost nothing, and what becomes of it is in the {@link Catalog}, so that a
 * truncate, a drop or a change of the schema is over or has not happened when the node starts again.
 */
final class StoredTable {
    private static final Logger LOGGER = LoggerFactory.getLogger(StoredTable.class);

    private final OpenStore open;
    private final TableId id;
    private final int number;
    private final StoredTableStats stats;
    private final PurgeSchedule purges = new PurgeSchedule();
    private final UnfinishedUpdates unfinished = new UnfinishedUpdates();

    /** Null until the first write. */
    private volatile Table table;

    /** Null until the first write of this process. */
    private volatile LatestTimestamps latestTimestamps;

    private Catalog.State state;

    private StoredTable(
            OpenStore open, TableId id, int number, Catalog.State state, Table table, StoredTableStats stats) {
        this.open = open;
        this.id = id;
        this.number = number;
        this.state = state;
        this.table = table;
        this.stats = stats;
    }

    /**
     * The stored table for a new memtable of a table: the stored one that no memtable has, which there is when the node
     * starts, or a new one.
     */
    static StoredTable attach(OpenStore open, TableId id) {
        StoredTable attached = null;
        for (Catalog.Entry entry : open.catalog().generations(id)) {
            if (entry.state() == Catalog.State.KEPT || !open.attach(id, entry.number())) {
                continue;
            }
            StoredTable found = stored(open, entry);
            if (found == null) {
                open.detach(id, entry.number());
            } else if (attached == null) {
                attached = found;
            } else {
                LOGGER.info("Moving generation {} of table {} into {}", entry.number(), id, attached.number);
                found.moveInto(attached);
                found.remove();
            }
        }
        if (attached != null) {
            LargeUpdate.recover(attached);
        } else {
            return new StoredTable(open, id, open.attachNew(id), Catalog.State.LIVE, null, new StoredTableStats(new byte[0]));
        }
        attached.mark(Catalog.State.LIVE);
        return attached;
    }

    /** A stored table that was to be written to a snapshot when the node ended; null if nothing is left of it. */
    static StoredTable attachKept(OpenStore open, Catalog.Entry entry) {
        open.attach(entry.id(), entry.number());
        StoredTable found = stored(open, entry);
        if (found == null) {
            open.detach(entry.id(), entry.number());
        } else {
            LargeUpdate.recover(found);
        }
        return found;
    }

    /** What the catalog says that there is. Null if it was to be removed, or never was there; then its traces are gone. */
    private static StoredTable stored(OpenStore open, Catalog.Entry entry) {
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
        return new StoredTable(open, entry.id(), entry.number(), entry.state(), table, stats);
    }

    static String name(TableId id, int number) {
        return id.toHexString() + "." + number;
    }

    TableId id() {
        return id;
    }

    int number() {
        return number;
    }

    OpenStore open() {
        return open;
    }

    StoredTableStats stats() {
        return stats;
    }

    /** When it was, and is to be, purged. */
    PurgeSchedule purges() {
        return purges;
    }

    /** Its updates that are there in part. */
    UnfinishedUpdates unfinished() {
        return unfinished;
    }

    /** Of its rows, by stripe. */
    LatestTimestamps latestTimestamps() {
        LatestTimestamps known = latestTimestamps;
        return known == null ? boundTimestamps() : known;
    }

    private synchronized LatestTimestamps boundTimestamps() {
        if (latestTimestamps == null) {
            latestTimestamps = new LatestTimestamps(stats.maxTimestamp());
        }
        return latestTimestamps;
    }

    SerializationHeaders headers() {
        return open.headers(id);
    }

    /** The rows; null if there were never any. */
    Table tableOrNull() {
        return table;
    }

    /** The rows, to be written to. */
    Table table() {
        Table made = table;
        return made == null ? make() : made;
    }

    private synchronized Table make() {
        if (table == null) {
            // In this order: a stored table in the catalog that has no table is nothing.
            open.catalog().put(id, number, state);
            table = open.store().tableOrCreate(name(id, number), ValueKind.FRAMES);
        }
        return table;
    }

    /** Says what becomes of it when the node stops now. Durable when it returns. */
    synchronized void mark(Catalog.State next) {
        if (state != next) {
            state = next;
            if (table != null) {
                open.catalog().put(id, number, next);
            }
        }
    }

    /** Says that it is to be written to a snapshot, also if the node stops now. Durable when it returns. */
    synchronized void keep(AutoSnapshot kept) {
        state = Catalog.State.KEPT;
        open.catalog().keep(number, kept);
    }

    /** What was said of the snapshot that it is to be written to. */
    AutoSnapshot kept() {
        return open.catalog().kept(id, number);
    }

    /** Removes it for good. */
    synchronized void remove() {
        if (table != null) {
            table.drop();
            open.catalog().remove(id, number);
        }
        open.detach(id, number);
    }

    /** Takes an update, whose latest timestamp is given, into the statistics, as must be done before it is written. */
    void cover(PartitionUpdate update, long maxTimestamp) {
        stats.cover(update, maxTimestamp, wider -> open.catalog().putSummary(id, number, wider));
    }

    /** Everything written before survives a power cut when this returns. */
    void sync() {
        open.store().sync();
    }

    /** Adds all rows to those of another stored table. Doing it twice, or in part, changes nothing. */
    private void moveInto(StoredTable other) {
        other.stats.cover(stats, wider -> open.catalog().putSummary(id, other.number, wider));
        LargeUpdate.recover(this);
        BulkWriter writer = new BulkWriter(open.store(), other.table());
        try (Rows rows = new RenewedRows(table, Range.all())) {
            while (rows.next()) {
                writer.append(rows.key(), rows.value());
            }
        }
        writer.flush();
        open.store().sync();
    }
}
