package io.aiodb.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What every store must do. A module of a store extends this and says which kind it is. */
public abstract class StoreContract extends Contract {
    private static final byte[] NOTHING = {};

    private Store store;
    private Table table;

    protected StoreContract(String kind, Map<String, String> parameters) {
        super(kind, parameters);
    }

    @BeforeEach
    void openStore() {
        store = open("store");
        table = store.createTable("rows");
    }

    @AfterEach
    void closeStore() {
        store.close();
    }

    @Test
    void rowsComeBackAsTheyWerePut() {
        assertNull(table.get(bytes("a")));
        for (Durability durability : Durability.values()) {
            table.put(bytes("a"), bytes("value " + durability), durability);
            assertArrayEquals(bytes("value " + durability), table.get(bytes("a")));
        }
        table.put(bytes("empty"), NOTHING, Durability.NONE);
        assertArrayEquals(NOTHING, table.get(bytes("empty")));
        table.delete(bytes("a"), Durability.SYNC);
        table.delete(bytes("never there"), Durability.NONE);
        assertNull(table.get(bytes("a")));
        assertEquals(List.of("empty="), rows(table.scan(Range.all())));
    }

    @Test
    void buffersOfEveryKindAreReadAndLeftAlone() {
        ByteBuffer direct = ByteBuffer.allocateDirect(10).put(bytes("..key....."));
        direct.position(2).limit(5);
        ByteBuffer heap = ByteBuffer.wrap(bytes("....value."), 4, 5).asReadOnlyBuffer();
        store.write(new Batch().put(table, direct, heap), Durability.NONE);
        assertEquals(2, direct.position());
        assertEquals(5, heap.remaining());
        assertEquals("value", text(table.get(bytes("key"))));
        for (ByteBuffer target : List.of(ByteBuffer.allocate(9), ByteBuffer.allocateDirect(9))) {
            target.position(3);
            assertEquals(5, table.get(direct, target));
            assertEquals("value", UTF_8.decode(target).toString());
            target.clear().position(5);
            assertEquals(5, table.get(direct, target), "there is no room: nothing is copied");
            assertEquals(9, target.limit());
            assertEquals(-1, table.get(heap, target));
            assertEquals(9, target.limit());
        }
    }

    @Test
    void keysAndValuesAreTakenUpToTheLimitsAndNotBeyond() {
        Capabilities can = store.capabilities();
        byte[] longest = filled(can.maxKeyBytes(), 'k');
        table.put(longest, bytes("v"), Durability.NONE);
        assertEquals("v", text(table.get(longest)));
        try (Rows rows = table.scan(Range.all().from(longest))) {
            assertTrue(rows.next());
            assertEquals(ByteBuffer.wrap(longest), rows.key());
        }
        byte[] tooLong = filled(can.maxKeyBytes() + 1, 'k');
        for (byte[] bad : List.of(NOTHING, tooLong)) {
            assertThrows(StoreException.Limit.class, () -> table.put(bad, NOTHING, Durability.NONE));
            assertThrows(StoreException.Limit.class, () -> table.append(bad, NOTHING, Durability.NONE));
            assertThrows(StoreException.Limit.class, () -> table.delete(bad, Durability.NONE));
            assertThrows(StoreException.Limit.class, () -> table.get(bad));
            assertThrows(StoreException.Limit.class, () -> table.get(ByteBuffer.wrap(bad), ByteBuffer.allocate(1)));
        }
        byte[] longBound = filled(can.maxRangeBoundBytes() + 1, 'b');
        assertThrows(StoreException.Limit.class, () -> table.deleteRange(longBound, NOTHING, Durability.NONE));
        assertThrows(StoreException.Limit.class, () -> can.checkValue(can.maxValueBytes() + 1));
        byte[] large = filled(3 << 20, 'l');
        table.put(bytes("large"), large, Durability.NONE);
        assertArrayEquals(large, table.get(bytes("large")));
        try (Rows rows = table.scan(Range.all().from(bytes("large")))) {
            assertTrue(rows.next());
            assertEquals(ByteBuffer.wrap(large), rows.value());
        }
    }

    @Test
    void nullIsRefused() {
        byte[] key = bytes("k");
        List<Runnable> calls = List.of(
                () -> table.get((byte[]) null),
                () -> table.get(null, ByteBuffer.allocate(1)),
                () -> table.get(ByteBuffer.wrap(key), null),
                () -> table.put(null, key, Durability.NONE),
                () -> table.put(key, null, Durability.NONE),
                () -> table.put(key, key, null),
                () -> table.delete(null, Durability.NONE),
                () -> table.append(key, null, Durability.NONE),
                () -> table.deleteRange(null, key, Durability.NONE),
                () -> table.scan(null),
                () -> Range.all().from(null),
                () -> store.write(null, Durability.NONE),
                () -> store.write(new Batch().put(table, ByteBuffer.wrap(key), ByteBuffer.wrap(key)), null),
                () -> store.createTable(null),
                () -> store.table(null));
        for (int call = 0; call < calls.size(); call++) {
            assertThrows(NullPointerException.class, calls.get(call)::run, "call " + call);
        }
        assertNull(table.get(key), "nothing was written");
    }

    @Test
    void keysAreOrderedAsUnsignedBytes() {
        byte[][] keys = {{0}, {0, 0}, {1}, {1, (byte) 255}, {127}, {(byte) 128}, {(byte) 255}, {(byte) 255, 0}};
        for (int position : new int[] {5, 2, 7, 0, 3, 6, 1, 4}) {
            table.put(keys[position], new byte[] {(byte) position}, Durability.NONE);
        }
        try (Rows rows = table.scan(Range.all())) {
            for (byte[] key : keys) {
                assertTrue(rows.next());
                assertEquals(ByteBuffer.wrap(key), rows.key());
            }
            assertFalse(rows.next());
            assertFalse(rows.next(), "the end stays the end");
        }
    }

    @Test
    void rangesHaveBoundsDirectionsAndLimits() {
        for (String key : List.of("b", "d", "f", "h")) {
            table.put(bytes(key), bytes(key), Durability.NONE);
        }
        assertEquals("b d f h", keys(Range.all()));
        assertEquals("h f d b", keys(Range.all().backward()));
        assertEquals("d f", keys(Range.all().from(bytes("d")).to(bytes("f"))));
        assertEquals("f d", keys(Range.all().from(bytes("d")).to(bytes("f")).backward()));
        assertEquals("d f", keys(Range.all().after(bytes("b")).before(bytes("h"))));
        assertEquals("f d", keys(Range.all().after(bytes("b")).before(bytes("h")).backward()));
        assertEquals("d f", keys(Range.all().from(bytes("c")).to(bytes("g"))));
        assertEquals("f d", keys(Range.all().after(bytes("c")).before(bytes("g")).backward()));
        assertEquals("h f", keys(Range.all().backward().limit(2)));
        assertEquals("b", keys(Range.all().limit(1)));
        assertEquals("", keys(Range.all().limit(0)));
        assertEquals("", keys(Range.all().from(bytes("f")).before(bytes("f"))));
        assertEquals("", keys(Range.all().from(bytes("g")).to(bytes("c"))));
        assertEquals("", keys(Range.all().from(bytes("g")).to(bytes("c")).backward()));
        assertEquals("", keys(Range.all().from(bytes("i"))));
        assertEquals("", keys(Range.all().before(bytes("b")).backward()));
        byte[] beyondKeys = filled(store.capabilities().maxKeyBytes() + 1, 'd');
        assertEquals("f h", keys(Range.all().from(beyondKeys)));
        assertEquals("h f", keys(Range.all().after(beyondKeys).backward()));
        assertEquals("b d", keys(Range.all().to(beyondKeys)));
        assertEquals("d b", keys(Range.all().before(beyondKeys).backward()));
        assertEquals("b d f h", keys(Range.all().from(NOTHING)));
        assertEquals("h f d b", keys(Range.all().after(NOTHING).backward()));
        assertEquals("", keys(Range.all().to(NOTHING)));
        assertEquals("", keys(Range.all().before(NOTHING).backward()));
        assertEquals("f=", rows(table.scan(Range.all().from(bytes("e")).keysOnly().limit(1))).get(0));
    }

    @Test
    void scansGoOnBeyondWhatOneFetchBrings() {
        Batch batch = new Batch();
        for (int row = 0; row < 5000; row++) {
            batch.put(table, ByteBuffer.wrap(bytes(String.format("%05d", row))), ByteBuffer.wrap(filled(row % 300, 'v')));
        }
        store.write(batch, Durability.NONE);
        for (Range range : List.of(Range.all(), Range.all().backward())) {
            try (Rows rows = table.scan(range)) {
                for (int count = 0; count < 5000; count++) {
                    int row = range.isBackward() ? 4999 - count : count;
                    assertTrue(rows.next());
                    assertEquals(String.format("%05d", row), UTF_8.decode(rows.key()).toString());
                    assertEquals(row % 300, rows.value().remaining());
                    assertTrue(rows.key().isReadOnly() && rows.value().isReadOnly());
                }
                assertFalse(rows.next());
            }
        }
    }

    @Test
    void appendingAddsToWhatIsThere() {
        table.append(bytes("a"), bytes("1"), Durability.NONE);
        table.append(bytes("a"), bytes("2"), Durability.NONE);
        table.put(bytes("b"), bytes("x"), Durability.NONE);
        table.append(bytes("b"), bytes("y"), Durability.SYNC);
        assertEquals("12", text(table.get(bytes("a"))));
        assertEquals("xy", text(table.get(bytes("b"))));
        table.delete(bytes("a"), Durability.NONE);
        assertNull(table.get(bytes("a")));
        table.append(bytes("a"), bytes("3"), Durability.NONE);
        assertEquals(List.of("a=3", "b=xy"), rows(table.scan(Range.all())));
        reopen();
        assertEquals(List.of("b=xy", "a=3"), rows(table.scan(Range.all().backward())));
    }

    @Test
    void rangeDeletesTakeWhatLiesBetweenTheirBounds() {
        Supplier<String> left = () -> {
            String keys = keys(Range.all());
            for (String key : List.of("a", "b", "c", "d", "e")) {
                table.put(bytes(key), bytes(key), Durability.NONE);
            }
            return keys;
        };
        left.get();
        table.deleteRange(bytes("b"), bytes("d"), Durability.NONE);
        assertNull(table.get(bytes("b")));
        assertEquals("a d e", left.get());
        table.deleteRange(NOTHING, bytes("c"), Durability.SYNC);
        assertEquals("c d e", left.get());
        table.deleteRange(bytes("c"), NOTHING, Durability.NONE);
        assertEquals("a b", left.get());
        table.deleteRange(bytes("d"), bytes("b"), Durability.NONE);
        assertEquals("a b c d e", left.get());
        table.deleteRange(NOTHING, NOTHING, Durability.NONE);
        assertEquals("", left.get());
        table.deleteRange(bytes("b"), bytes("d"), Durability.NONE);
        reopen();
        assertEquals("a d e", keys(Range.all()));
    }

    @Test
    void batchesActInTheirOrderAndInSeveralTables() {
        Table other = store.createTable("other");
        Batch batch = new Batch();
        batch.put(table, wrap("a"), wrap("1")).put(other, wrap("a"), wrap("2"));
        batch.put(table, wrap("a"), wrap("3")).append(table, wrap("a"), wrap("4"));
        batch.put(table, wrap("b"), wrap("5")).deleteRange(table, wrap("b"), wrap("c")).put(table, wrap("c"), wrap("6"));
        batch.put(other, wrap("d"), wrap("7")).delete(other, wrap("d")).append(other, wrap("e"), wrap("8"));
        assertEquals(10, batch.size());
        store.write(batch, Durability.SYNC);
        assertEquals(List.of("a=34", "c=6"), rows(table.scan(Range.all())));
        assertEquals(List.of("a=2", "e=8"), rows(other.scan(Range.all())));
        batch.clear();
        store.write(batch, Durability.SYNC);
        store.write(batch.delete(table, wrap("a")), Durability.NONE);
        assertEquals("c", keys(Range.all()));
    }

    @Test
    void aBatchWithSomethingWrongChangesNothing() {
        Table dropped = store.createTable("dropped");
        dropped.drop();
        Batch batch = new Batch().put(table, wrap("a"), wrap("1")).put(dropped, wrap("a"), wrap("2"));
        assertThrows(StoreException.NoSuchTable.class, () -> store.write(batch, Durability.SYNC));
        try (Store another = open("another")) {
            Table foreign = another.createTable("rows");
            Batch mixed = new Batch().put(table, wrap("a"), wrap("1")).put(foreign, wrap("a"), wrap("2"));
            assertThrows(StoreException.NoSuchTable.class, () -> store.write(mixed, Durability.SYNC));
            assertNull(foreign.get(bytes("a")));
        }
        assertNull(table.get(bytes("a")));
    }

    @Test
    void snapshotsStayAsTheyWere() {
        table.put(bytes("a"), bytes("old"), Durability.NONE);
        table.put(bytes("b"), bytes("old"), Durability.NONE);
        try (Snapshot snapshot = store.snapshot();
                Rows scan = table.scan(Range.all())) {
            table.put(bytes("a"), bytes("new"), Durability.NONE);
            table.append(bytes("a"), bytes("er"), Durability.NONE);
            table.delete(bytes("b"), Durability.NONE);
            table.put(bytes("c"), bytes("new"), Durability.SYNC);
            assertEquals("old", text(snapshot.get(table, bytes("a"))));
            assertNull(snapshot.get(table, bytes("c")));
            assertEquals(List.of("a=old", "b=old"), rows(snapshot.scan(table, Range.all())));
            assertEquals(List.of("b=old", "a=old"), rows(snapshot.scan(table, Range.all().backward())));
            ByteBuffer value = ByteBuffer.allocateDirect(8);
            assertEquals(3, snapshot.get(table, wrap("b"), value));
            assertEquals(3, value.limit());
            Table younger = store.createTable("younger");
            assertThrows(StoreException.NoSuchTable.class, () -> snapshot.get(younger, bytes("a")));
            assertThrows(StoreException.NoSuchTable.class, () -> snapshot.scan(younger, Range.all()));
            table.truncate();
            assertNull(table.get(bytes("c")));
            assertEquals("old", text(snapshot.get(table, bytes("a"))));
            assertEquals(List.of("a=old", "b=old"), rows(snapshot.scan(table, Range.all())));
            assertEquals(List.of("a=old", "b=old"), rows(scan));
        }
        assertEquals(List.of(), rows(table.scan(Range.all())));
    }

    @Test
    void tablesAreMadeEmptiedDroppedAndListed() {
        assertThrows(StoreException.TableExists.class, () -> store.createTable("rows"));
        assertThrows(StoreException.NoSuchTable.class, () -> store.table("missing"));
        for (String bad : List.of("", "a\nb", "x".repeat(256))) {
            assertThrows(StoreException.TableName.class, () -> store.createTable(bad), bad);
        }
        Table second = store.tableOrCreate("ä second one");
        second.put(bytes("k"), bytes("v"), Durability.NONE);
        table.put(bytes("k"), bytes("v"), Durability.NONE);
        assertEquals(List.of("rows", "ä second one"), store.tableNames());
        assertEquals("v", text(store.table("ä second one").get(bytes("k"))));
        second.truncate();
        assertNull(second.get(bytes("k")));
        second.put(bytes("l"), bytes("w"), Durability.NONE);
        reopen();
        assertEquals(List.of("l=w"), rows(store.table("ä second one").scan(Range.all())));
        Table dropped = store.table("ä second one");
        dropped.drop();
        assertEquals(List.of("rows"), store.tableNames());
        Table again = store.createTable("ä second one");
        assertNull(again.get(bytes("l")));
        List<Runnable> uses = List.of(
                () -> dropped.get(bytes("k")),
                () -> dropped.put(bytes("k"), bytes("v"), Durability.NONE),
                () -> dropped.scan(Range.all()),
                dropped::estimatedRows,
                dropped::truncate,
                dropped::drop);
        for (Runnable use : uses) {
            assertThrows(StoreException.NoSuchTable.class, use::run);
        }
        assertEquals("v", text(table.get(bytes("k"))));
    }

    @Test
    void reopeningBringsEverythingBack() {
        for (int row = 0; row < 100; row++) {
            table.put(bytes("key " + row), bytes("value " + row), Durability.values()[row % 3]);
        }
        store.sync();
        reopen();
        for (int row = 0; row < 100; row++) {
            assertEquals("value " + row, text(table.get(bytes("key " + row))));
        }
        Statistics statistics = store.statistics();
        assertTrue(statistics.diskBytes() > 0, statistics.toString());
        assertEquals(100, table.estimatedRows(), "exact where nothing was overwritten");
        assertEquals(100, statistics.estimatedRows());
    }

    @Test
    void oneStoreIsOpenOnce() {
        assertThrows(StoreException.InUse.class, () -> open("store"));
        table.put(bytes("a"), bytes("1"), Durability.NONE);
        assertEquals("1", text(table.get(bytes("a"))));
    }

    @Test
    void whatIsClosedSaysSo() {
        table.put(bytes("a"), bytes("1"), Durability.NONE);
        Rows closedRows = table.scan(Range.all());
        assertTrue(closedRows.next());
        closedRows.close();
        closedRows.close();
        assertThrows(StoreException.Closed.class, closedRows::next);
        Snapshot closedSnapshot = store.snapshot();
        Rows ofSnapshot = closedSnapshot.scan(table, Range.all());
        closedSnapshot.close();
        closedSnapshot.close();
        assertThrows(StoreException.Closed.class, () -> closedSnapshot.get(table, bytes("a")));
        assertThrows(StoreException.Closed.class, () -> closedSnapshot.scan(table, Range.all()));
        mayBeClosed(ofSnapshot::next);
        Snapshot snapshot = store.snapshot();
        Rows rows = table.scan(Range.all());
        store.close();
        store.close();
        List<Runnable> uses = List.of(
                () -> table.get(bytes("a")),
                () -> table.get(wrap("a"), ByteBuffer.allocateDirect(4)),
                () -> table.put(bytes("a"), bytes("2"), Durability.SYNC),
                () -> table.scan(Range.all()),
                table::estimatedRows,
                table::truncate,
                table::drop,
                () -> snapshot.get(table, bytes("a")),
                () -> snapshot.scan(table, Range.all()),
                rows::next,
                store::snapshot,
                store::sync,
                store::statistics,
                store::tableNames,
                () -> store.table("rows"),
                () -> store.createTable("new"));
        for (int use = 0; use < uses.size(); use++) {
            assertThrows(StoreException.Closed.class, uses.get(use)::run, "use " + use);
        }
        rows.close();
        snapshot.close();
        ofSnapshot.close();
        assertNotNull(store.capabilities());
        store = open("store");
        assertEquals("1", text(store.table("rows").get(bytes("a"))));
    }

    @Test
    void parametersThatMakeNoSenseAreRefused() {
        Path elsewhere = directory.resolve("elsewhere");
        StoreException unknown = assertThrows(
                StoreException.Configuration.class, () -> Stores.open(kind, elsewhere, Map.of("colour", "red")));
        assertTrue(unknown.getMessage().contains("colour"), unknown.getMessage());
        StoreException noStore = assertThrows(
                StoreException.Configuration.class, () -> Stores.open("paper", elsewhere, Map.of()));
        assertTrue(noStore.getMessage().contains(kind), noStore.getMessage());
        assertFalse(elsewhere.toFile().exists(), "nothing was made");
    }

    private void reopen() {
        store.close();
        store = open("store");
        table = store.table("rows");
    }

    private String keys(Range range) {
        List<String> keys = new ArrayList<>();
        try (Rows rows = table.scan(range)) {
            while (rows.next()) {
                keys.add(UTF_8.decode(rows.key()).toString());
            }
        }
        return String.join(" ", keys);
    }

    /** Rows may outlive their snapshot, or end with it. */
    private static void mayBeClosed(Runnable use) {
        try {
            use.run();
        } catch (StoreException.Closed ended) {
            assertNotNull(ended.getMessage());
        }
    }

    /** The rows of a scan, which is closed. */
    static List<String> rows(Rows rows) {
        List<String> found = new ArrayList<>();
        try (rows) {
            while (rows.next()) {
                found.add(UTF_8.decode(rows.key()) + "=" + UTF_8.decode(rows.value()));
            }
        }
        return found;
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    static ByteBuffer wrap(String text) {
        return ByteBuffer.wrap(bytes(text));
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, UTF_8);
    }

    static byte[] filled(int length, char with) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) with);
        return bytes;
    }
}
