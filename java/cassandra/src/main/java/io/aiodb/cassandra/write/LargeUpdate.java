package io.aiodb.cassandra.write;

import io.aiodb.cassandra.format.StoredKey;
import io.aiodb.cassandra.table.Catalog;
import io.aiodb.cassandra.table.OpenStore;
import io.aiodb.cassandra.table.StoredTable;
import io.aiodb.cassandra.table.UnfinishedUpdates;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.cassandra.concurrent.ScheduledExecutors;
import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.DecoratedKey;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An update that is more than stores write at once. It is kept as a whole first, then written in parts, then forgotten.
 * Where the store has no room for all parts they are written again once it has, and when a node starts that ended meanwhile;
 * that changes nothing where they are there already.
 */
public final class LargeUpdate {
    private static final Logger LOGGER = LoggerFactory.getLogger(LargeUpdate.class);

    private static final int RETRY_SECONDS = 5;

    private LargeUpdate() {}

    /**
     * Writes a batch of appends to rows of a partition, while nobody opens readers or writes to its stripe.
     *
     * @param minTimestamp not later than any timestamp in it
     */
    static void write(
            Batch appends, StoredTable storedTable, DecoratedKey partition, long minTimestamp, Durability durability) {
        byte[] kept = encode(appends);
        OpenStore open = storedTable.open();
        byte[] place = open.catalog().keepUpdate(storedTable.id(), storedTable.number(), kept, durability);
        boolean written = false;
        try {
            write(kept, storedTable);
            open.catalog().forgetUpdate(place);
            written = true;
        } finally {
            if (!written) {
                storedTable.unfinished().add(new UnfinishedUpdates.Update(place, partition, minTimestamp));
                finishLater(storedTable);
            }
        }
        if (durability == Durability.SYNC) {
            open.store().sync();
        }
    }

    private static void finishLater(StoredTable storedTable) {
        ScheduledExecutors.optionalTasks.schedule(() -> finishOrLater(storedTable), RETRY_SECONDS, TimeUnit.SECONDS);
    }

    private static void finishOrLater(StoredTable storedTable) {
        try {
            finish(storedTable);
        } catch (StoreException.NoSuchTable | StoreException.Closed over) {
            // The table was dropped or truncated, or the node ends.
        } catch (StoreException.Unavailable away) {
            storedTable.open().outage().noticed(away);
            finishLater(storedTable);
        } catch (StoreException failure) {
            LOGGER.warn("An update of the table {} is there in part: {}", storedTable.id(), failure.getMessage());
            finishLater(storedTable);
        }
    }

    /**
     * Writes all unfinished updates of a stored table, with durability {@code INTERVAL}.
     *
     * @throws StoreException if that fails again; the rest stays unfinished
     */
    public static void finish(StoredTable storedTable) {
        OpenStore open = storedTable.open();
        for (UnfinishedUpdates.Update update : storedTable.unfinished().all()) {
            open.locks().writeInParts(update.stripe(), () -> {
                // A purge that is under way may be past the rows that come now, and must leave the deletions that hide them.
                storedTable.purgeSchedule().writes(update.stripe(), update.minTimestamp());
                byte[] kept = open.catalog().keptUpdate(update.place());
                if (kept != null) {
                    write(kept, storedTable);
                    open.catalog().forgetUpdate(update.place());
                }
                storedTable.unfinished().remove(update);
            });
        }
    }

    /**
     * Writes the updates that were kept, and not finished, when the node ended.
     *
     * @throws StoreException if that fails; the rest stays kept
     */
    public static void recover(StoredTable storedTable) {
        Catalog catalog = storedTable.open().catalog();
        for (byte[] place : catalog.keptUpdates(storedTable.id(), storedTable.number())) {
            write(catalog.keptUpdate(place), storedTable);
            catalog.forgetUpdate(place);
        }
    }

    /** The same of a store that may have no room for them: then they are unfinished as before, and a node with a full store starts. */
    public static void recoverOrLater(StoredTable storedTable) {
        try {
            recover(storedTable);
        } catch (StoreException.Full | StoreException.Limit noRoom) {
            LOGGER.warn(
                    "Updates of the table {} stay there in part until the store has room: {}", storedTable.id(), noRoom.getMessage());
            Catalog catalog = storedTable.open().catalog();
            for (byte[] place : catalog.keptUpdates(storedTable.id(), storedTable.number())) {
                ByteBuffer key = take(ByteBuffer.wrap(catalog.keptUpdate(place)));
                DecoratedKey partition =
                        StoredKey.parse(key, DatabaseDescriptor.getPartitioner()).key();
                // What its timestamps are is not known here.
                storedTable.unfinished().add(new UnfinishedUpdates.Update(place, partition, Long.MIN_VALUE));
            }
            finishLater(storedTable);
        }
    }

    /**
     * Shows the rows of each unfinished update, as a stored table that has only these: for somebody who takes the rows of the
     * stored table elsewhere. What is finished meanwhile is in the stored table, so that is to be read afterwards.
     */
    public static void forEachUnfinished(StoredTable storedTable, Consumer<StoredTable> reader) {
        for (UnfinishedUpdates.Update update : storedTable.unfinished().all()) {
            byte[] kept = storedTable.open().catalog().keptUpdate(update.place());
            if (kept != null) {
                reader.accept(storedTable.withRows(rows(kept, storedTable.table())));
            }
        }
    }

    private static KeptRows rows(byte[] kept, Table table) {
        KeptRows rows = new KeptRows(table);
        ByteBuffer rest = ByteBuffer.wrap(kept);
        while (rest.hasRemaining()) {
            ByteBuffer key = take(rest);
            rows.append(key, take(rest));
        }
        return rows;
    }

    private static void write(byte[] kept, StoredTable storedTable) {
        BulkWriter writer = new BulkWriter(storedTable.open().store(), storedTable.table());
        ByteBuffer rest = ByteBuffer.wrap(kept);
        while (rest.hasRemaining()) {
            ByteBuffer key = take(rest);
            writer.append(key, take(rest));
        }
        writer.flush();
    }

    private static ByteBuffer take(ByteBuffer rest) {
        int length = rest.getInt();
        ByteBuffer taken = rest.slice(rest.position(), length);
        rest.position(rest.position() + length);
        return taken;
    }

    private static byte[] encode(Batch appends) {
        // The batch has more about each operation than is needed here.
        ByteBuffer kept = ByteBuffer.allocate(appends.encoded().limit());
        appends.replay(new Batch.Visitor() {
            @Override
            public void append(Table table, ByteBuffer key, ByteBuffer operand) {
                kept.putInt(key.remaining()).put(key).putInt(operand.remaining()).put(operand);
            }

            @Override
            public void put(Table table, ByteBuffer key, ByteBuffer value) {
                throw new AssertionError("an update only appends");
            }

            @Override
            public void delete(Table table, ByteBuffer key) {
                throw new AssertionError("an update only appends");
            }

            @Override
            public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
                throw new AssertionError("an update only appends");
            }
        });
        byte[] bytes = new byte[kept.position()];
        kept.flip().get(bytes);
        return bytes;
    }
}
