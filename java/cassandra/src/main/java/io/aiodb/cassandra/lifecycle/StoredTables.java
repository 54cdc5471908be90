package io.aiodb.cassandra.lifecycle;

import io.aiodb.cassandra.read.RenewedRows;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.write.BulkWriter;
import io.aiodb.cassandra.write.LargeUpdate;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.StoreException;
import java.util.concurrent.TimeUnit;
import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.schema.TableId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The stored tables that memtables of this process have: each is attached to one memtable at a time. Work that a node left
 * half done when it ended is completed here.
 */
public final class StoredTables {
    private static final Logger LOGGER = LoggerFactory.getLogger(StoredTables.class);

    private static final int RETRY_SECONDS = 5;

    private StoredTables() {}

    /**
     * The stored table for a new memtable of a table: the stored one that no memtable has, which there is when the node
     * starts, or a new one.
     */
    public static StoredTable attach(OpenStore open, TableId id) {
        StoredTable attached = null;
        for (Catalog.Entry entry : open.catalog().storedTables(id)) {
            if (entry.state() == Catalog.State.KEPT || !open.attach(id, entry.number())) {
                continue;
            }
            StoredTable found = StoredTable.load(open, entry);
            if (found == null) {
                open.detach(id, entry.number());
            } else if (attached == null) {
                attached = found;
            } else {
                LOGGER.info("Moving the stored table {} of table {} into {}", entry.number(), id, attached.number());
                move(found, attached);
                found.remove();
            }
        }
        if (attached == null) {
            return StoredTable.create(open, id);
        }
        LargeUpdate.recoverOrLater(attached);
        try {
            attached.mark(Catalog.State.LIVE);
        } catch (StoreException.Full noRoom) {
            // A node that starts now takes the rows of a table that was being flushed as those of one that lives.
            LOGGER.warn("The stored table {} of table {} is the table's again, and there is no room to say so: {}",
                    attached.number(), id, noRoom.getMessage());
        }
        return attached;
    }

    /** Removes a stored table whose memtable is discarded. Where the store cannot do that now, it is tried again until it can. */
    public static void remove(StoredTable discarded) {
        try {
            discarded.remove();
        } catch (StoreException.Full | StoreException.Unavailable later) {
            LOGGER.warn("The stored table {} of table {} is not removed yet, and is there again if the node ends before it is: {}",
                    discarded.number(), discarded.id(), later.getMessage());
            removeLater(discarded);
        } catch (StoreException.Closed over) {
            LOGGER.info("The stored table {} of table {} is not removed: the node ends", discarded.number(), discarded.id());
        }
    }

    private static void removeLater(StoredTable discarded) {
        ScheduledExecutors.optionalTasks.schedule(() -> removeAgain(discarded), RETRY_SECONDS, TimeUnit.SECONDS);
    }

    private static void removeAgain(StoredTable discarded) {
        try {
            discarded.remove();
            LOGGER.info("The stored table {} of table {} is removed now", discarded.number(), discarded.id());
        } catch (StoreException.Full | StoreException.Unavailable later) {
            removeLater(discarded);
        } catch (StoreException.Closed over) {
            // The node ends.
        }
    }

    /** A stored table that was to be written to a snapshot when the node ended; null if nothing is left of it. */
    static StoredTable attachKept(OpenStore open, Catalog.Entry entry) {
        open.attach(entry.id(), entry.number());
        StoredTable found = StoredTable.load(open, entry);
        if (found == null) {
            open.detach(entry.id(), entry.number());
        } else {
            LargeUpdate.recoverOrLater(found);
        }
        return found;
    }

    /** Adds all rows of a stored table to those of another. Doing it twice, or in part, changes nothing. */
    private static void move(StoredTable from, StoredTable to) {
        to.coverAllOf(from);
        LargeUpdate.recover(from);
        BulkWriter writer = new BulkWriter(to.open().store(), to.table());
        try (Rows rows = new RenewedRows(from.table(), Range.all())) {
            while (rows.next()) {
                writer.append(rows.key(), rows.value());
            }
        }
        writer.flush();
        to.sync();
    }
}
