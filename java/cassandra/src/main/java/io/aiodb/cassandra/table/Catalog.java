package io.aiodb.cassandra.table;

import io.aiodb.cassandra.format.AutoSnapshot;
import io.aiodb.cassandra.format.SerializationHeaders;
import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Store;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.cassandra.schema.TableId;

/** The table of a store that describes the others: which stored tables there are, their states, statistics and headers. */
public final class Catalog {
    /** No table of rows has this name: theirs have a dot. */
    private static final String TABLE = "catalog";

    private static final byte STATE = 'g';
    private static final byte STATS = 's';
    private static final byte HEADER = 'h';
    private static final byte UPDATE = 'u';
    private static final byte KEPT = 't';
    private static final byte[] NODE = {'n'};
    private static final byte[] FORMAT = {'f'};

    /** How rows are stored: as frames that say what they have. Stores without a format are of before. */
    private static final byte[] FRAMES_WITH_COVERS = {2};

    private static final int KEY_BYTES = 1 + 2 * Long.BYTES + Integer.BYTES;

    /** The fate of a stored table when the node stops now. The ordinals are stored. */
    public enum State {
        /** It is the table's. */
        LIVE,
        /** It is being written to SSTables, and remains the table's until that is done. */
        FLUSHING,
        /** It was truncated or dropped. */
        CLEARED,
        /** It was truncated or dropped, and is to be written to a snapshot before it goes. */
        KEPT
    }

    /** A stored stored table of a table. */
    public record Entry(TableId id, int number, State state) {}

    private final Store store;
    private final Table table;

    /** Behind those of updates that are still kept. */
    private final AtomicLong nextUpdate;

    Catalog(Store store) {
        this.store = store;
        this.table = store.tableOrCreate(TABLE);
        this.nextUpdate = new AtomicLong(nextUpdate());
    }

    private long nextUpdate() {
        return places(new byte[] {UPDATE}, new byte[] {UPDATE + 1}).stream()
                .mapToLong(place -> ByteBuffer.wrap(place).getLong(KEY_BYTES) + 1)
                .max()
                .orElse(0);
    }

    /** The node that the rows belong to; null if no node has claimed them. */
    public UUID node() {
        byte[] found = table.get(NODE);
        return found == null ? null : UUID.fromString(new String(found, StandardCharsets.US_ASCII));
    }

    /** Whether rows are stored as this version does it. */
    boolean hasKnownFormat() {
        return Arrays.equals(table.get(FORMAT), FRAMES_WITH_COVERS);
    }

    /** Says, durably, which node the rows belong to. */
    void claim(UUID node) {
        table.put(FORMAT, FRAMES_WITH_COVERS, Durability.INTERVAL);
        table.put(NODE, node.toString().getBytes(StandardCharsets.US_ASCII), Durability.SYNC);
    }

    /** The stored tables of one table, in the order of their numbers. */
    public List<Entry> storedTables(TableId id) {
        return entries(key(STATE, id, 0), key(STATE, id, -1));
    }

    /** The stored tables of all tables. */
    public List<Entry> storedTables() {
        return entries(new byte[] {STATE}, new byte[] {STATE + 1});
    }

    private List<Entry> entries(byte[] from, byte[] to) {
        List<Entry> entries = new ArrayList<>();
        try (Rows rows = table.scan(Range.all().from(from).to(to))) {
            while (rows.next()) {
                ByteBuffer key = rows.key();
                key.get();
                TableId id = TableId.fromUUID(new UUID(key.getLong(), key.getLong()));
                entries.add(new Entry(id, key.getInt(), State.values()[rows.value().get()]));
            }
        }
        return entries;
    }

    /** Takes note of a stored table that is about to be made, durably. */
    void put(TableId id, int number, State state) {
        table.put(key(STATE, id, number), new byte[] {(byte) state.ordinal()}, Durability.SYNC);
    }

    /**
     * Changes the state of a stored table, durably. It is written as a delete with an operand of a byte: a full aiodb store refuses
     * puts, and has room for these, by which tables go.
     */
    void change(TableId id, int number, State state) {
        ByteBuffer key = ByteBuffer.wrap(key(STATE, id, number));
        ByteBuffer operand = ByteBuffer.wrap(new byte[] {(byte) state.ordinal()});
        store.write(new Batch().delete(table, key).append(table, key, operand), Durability.SYNC);
    }

    /** Says, durably, that a stored table is to be written to a snapshot. What a full store refuses leaves its state as it was. */
    void keep(int number, AutoSnapshot kept) {
        TableId id = kept.metadata().id;
        table.put(key(KEPT, id, number), kept.encode(), Durability.INTERVAL);
        change(id, number, State.KEPT);
    }

    /** The snapshot that a stored table is to be written to. */
    AutoSnapshot kept(TableId id, int number) {
        return AutoSnapshot.decode(id, table.get(key(KEPT, id, number)));
    }

    /** Forgets a stored table, durably. */
    void remove(TableId id, int number) {
        table.delete(key(KEPT, id, number), Durability.INTERVAL);
        table.delete(key(STATS, id, number), Durability.INTERVAL);
        keptUpdates(id, number).forEach(this::forgetUpdate);
        table.delete(key(STATE, id, number), Durability.SYNC);
    }

    /** A stored table's statistics; empty if there is none. */
    byte[] stats(TableId id, int number) {
        byte[] found = table.get(key(STATS, id, number));
        return found == null ? new byte[0] : found;
    }

    /** Keeps a stored table's statistics. Writes that come later survive a power cut only with them. */
    void putStats(TableId id, int number, ByteBuffer stats) {
        table.put(key(STATS, id, number), bytes(stats), Durability.INTERVAL);
    }

    /** Where the headers of a table's rows are. */
    SerializationHeaders.Storage headers(TableId id) {
        return new SerializationHeaders.Storage() {
            @Override
            public List<byte[]> load() {
                List<byte[]> headers = new ArrayList<>();
                try (Rows rows = table.scan(Range.all().from(key(HEADER, id, 0)).to(key(HEADER, id, -1)))) {
                    while (rows.next()) {
                        headers.add(bytes(rows.value()));
                    }
                }
                return headers;
            }

            @Override
            public void save(int number, byte[] header) {
                table.put(key(HEADER, id, number), header, Durability.SYNC);
            }
        };
    }

    /**
     * Keeps an update that is written in parts. It is as durable as its class says when this returns.
     *
     * @return its place
     */
    public byte[] keepUpdate(TableId id, int number, byte[] update, Durability durability) {
        byte[] place = ByteBuffer.allocate(KEY_BYTES + Long.BYTES)
                .put(key(UPDATE, id, number))
                .putLong(nextUpdate.getAndIncrement())
                .array();
        table.put(place, update, durability);
        return place;
    }

    /** Forgets it, as it is written. */
    public void forgetUpdate(byte[] place) {
        table.delete(place, Durability.INTERVAL);
    }

    /** The places of the updates that were not written to their end. */
    public List<byte[]> keptUpdates(TableId id, int number) {
        return places(key(UPDATE, id, number), key(UPDATE, id, number + 1));
    }

    private List<byte[]> places(byte[] from, byte[] to) {
        List<byte[]> places = new ArrayList<>();
        try (Rows rows = table.scan(Range.all().from(from).before(to).keysOnly())) {
            while (rows.next()) {
                places.add(bytes(rows.key()));
            }
        }
        return places;
    }

    /** The update that was kept there; null if it was forgotten. */
    public byte[] keptUpdate(byte[] place) {
        return table.get(place);
    }

    private static byte[] key(byte kind, TableId id, int number) {
        return ByteBuffer.allocate(KEY_BYTES)
                .put(kind)
                .putLong(id.asUUID().getMostSignificantBits())
                .putLong(id.asUUID().getLeastSignificantBits())
                .putInt(number)
                .array();
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(buffer.position(), bytes);
        return bytes;
    }
}
