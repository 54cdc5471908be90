package io.aiodb.store.redis;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Stores;
import io.aiodb.store.Table;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a store makes of the states that its server can be in. */
final class RedisServerTest {
    private static final int ROWS = 200;

    @TempDir
    Path directory;

    private RedisProcess server;

    @AfterEach
    void stop() {
        server.close();
    }

    private void start(String... options) {
        server = new RedisProcess(directory.resolve("server"), options);
    }

    private Store open(String name, String... parameters) {
        Map<String, String> given = new HashMap<>(Map.of("port", Integer.toString(server.port)));
        for (int at = 0; at < parameters.length; at += 2) {
            given.put(parameters[at], parameters[at + 1]);
        }
        return Stores.open("redis", directory.resolve(name), given);
    }

    private static <T extends StoreException> void refused(Class<T> kind, String word, Runnable call) {
        T refused = assertThrows(kind, call::run);
        assertTrue(refused.getMessage().contains(word), refused.getMessage());
    }

    @Test
    void aServerThatIsDownFailsCallsUntilItIsBack() {
        start();
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            Snapshot snapshot = store.snapshot();
            server.kill();
            List<Runnable> calls = List.of(
                    () -> table.get(bytes("a")),
                    () -> table.get(bytes("never there")),
                    () -> table.put(bytes("b"), bytes("2"), Durability.SYNC),
                    () -> table.scan(Range.all()),
                    table::estimatedRows,
                    table::truncate,
                    store::sync,
                    store::statistics,
                    () -> store.createTable("other"));
            for (Runnable call : calls) {
                assertThrows(StoreException.Unavailable.class, call::run);
            }
            assertThrows(StoreException.class, () -> snapshot.get(table, bytes("a")));
            server.start();
            retried(() -> assertArrayEquals(bytes("1"), table.get(bytes("a"))));
            assertThrows(StoreException.SnapshotEnded.class, () -> snapshot.scan(table, Range.all()));
            table.put(bytes("b"), bytes("2"), Durability.SYNC);
            assertEquals(List.of("rows"), store.tableNames());
            assertEquals(2, table.estimatedRows());
        }
    }

    @Test
    void noAcknowledgedWriteIsLostWithTheServer() throws Exception {
        start();
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            List<Integer> acknowledged = new ArrayList<>();
            CountDownLatch some = new CountDownLatch(ROWS);
            Thread writer = new Thread(() -> {
                for (int row = 0; row < 3 * ROWS; row++) {
                    try {
                        table.put(bytes("key " + row), bytes("value " + row), Durability.SYNC);
                        acknowledged.add(row);
                    } catch (StoreException.Unavailable down) {
                        pause();
                    }
                    some.countDown();
                }
            });
            writer.start();
            some.await();
            server.kill();
            server.start();
            writer.join();
            for (int row : acknowledged) {
                retried(() -> assertArrayEquals(bytes("value " + row), table.get(bytes("key " + row))));
            }
            assertTrue(acknowledged.size() >= ROWS, acknowledged.size() + " were acknowledged");
        }
    }

    @Test
    void aServerThatHangsIsNotWaitedForLongerThanAsked() throws Exception {
        start();
        try (Store store = open("store", "timeout_millis", "2000")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            signal("STOP");
            refused(StoreException.Unavailable.class, "2000 ms", () -> table.get(bytes("a")));
            assertThrows(StoreException.Unavailable.class, () -> table.put(bytes("a"), bytes("2"), Durability.SYNC));
            signal("CONT");
            retried(() -> assertArrayEquals(bytes("1"), table.get(bytes("a"))));
        }
    }

    @Test
    void aServerWithoutTheRowsIsNotAnEmptyStore() throws IOException {
        start();
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server.say("FLUSHALL");
            refused(StoreException.Unavailable.class, "it was emptied", () -> table.get(bytes("a")));
            refused(StoreException.Unavailable.class, "bring the server's data back", () -> table.scan(Range.all()));
            assertThrows(
                    StoreException.Unavailable.class, () -> table.put(bytes("b"), bytes("2"), Durability.SYNC));
            server.kill();
            try (Stream<Path> files = Files.walk(directory.resolve("server/appendonlydir"))) {
                for (Path file : files.filter(Files::isRegularFile).toList()) {
                    Files.delete(file);
                }
            }
            server.start();
            retried(() -> refused(
                    StoreException.Unavailable.class, "bring the server's data back", () -> table.get(bytes("a"))));
        }
        refused(StoreException.Unavailable.class, "bring the server's data back", () -> open("store"));
    }

    @Test
    void aServerThatKeepsRowsLessWellIsRefused() {
        start();
        Map<String, String> weaker = Map.of(
                "appendonly", "no",
                "appendfsync", "everysec",
                "no-appendfsync-on-rewrite", "yes",
                "maxmemory-policy", "allkeys-lru",
                "proto-max-bulk-len", "1048576");
        weaker.forEach((name, value) -> {
            String before = configured(name);
            server.say("CONFIG SET " + name + " " + value);
            refused(StoreException.Configuration.class, "`" + name + "` is " + value, () -> open("weak"));
            server.say("CONFIG SET " + name + " " + before);
        });
        open("weak").close();
        server.say("CONFIG SET appendfsync no");
        refused(StoreException.Configuration.class, "appendfsync", () -> open("weak", "durability", "interval"));
        server.say("REPLICAOF 127.0.0.1 1");
        refused(StoreException.Configuration.class, "replica", () -> open("weak", "durability", "none"));
    }

    /** As when its configuration file was changed while it was down. */
    @Test
    void aServerThatHasBecomeWeakerIsNotWrittenTo() {
        start();
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            server.say("CONFIG SET appendfsync everysec");
            server.say("CLIENT KILL TYPE normal SKIPME yes");
            retried(() -> refused(
                    StoreException.Unavailable.class,
                    "`appendfsync` is everysec",
                    () -> table.put(bytes("a"), bytes("1"), Durability.SYNC)));
            server.say("CONFIG SET appendfsync always");
            retried(() -> table.put(bytes("a"), bytes("1"), Durability.SYNC));
        }
    }

    @Test
    void aServerThatSyncsEverySecondDoesSoEarlierForWritesOfClassSync() {
        start("--appendfsync", "everysec");
        try (Store store = open("store", "durability", "interval")) {
            assertEquals(Set.of(Durability.SYNC, Durability.INTERVAL), store.capabilities().durabilities());
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.INTERVAL);
            table.put(bytes("b"), bytes("2"), Durability.SYNC);
            store.sync();
            assertEquals("everysec", configured("appendfsync"));
        }
        try (Store store = open("none", "durability", "none")) {
            assertEquals(Set.of(Durability.NONE), store.capabilities().durabilities());
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.NONE);
            refused(
                    StoreException.Unsupported.class,
                    "interval or sync",
                    () -> table.put(bytes("a"), bytes("1"), Durability.SYNC));
            refused(StoreException.Unsupported.class, "interval or sync", store::sync);
        }
    }

    @Test
    void passwordsAreSaidAndWrongOnesRefused() throws IOException {
        start("--requirepass", "right");
        refused(StoreException.Configuration.class, "password_file", () -> open("store"));
        Path file = directory.resolve("password");
        Files.writeString(file, "wrong\n");
        refused(
                StoreException.Configuration.class, "WRONGPASS", () -> open("store", "password_file", file.toString()));
        refused(StoreException.Configuration.class, "cannot read", () -> open("store", "password_file", file + "s"));
        Files.writeString(file, "right\n");
        open("store", "password_file", file.toString()).close();
    }

    @Test
    void whatIsNotTheStoresIsLeftAlone() {
        start();
        open("store", "name", "shared").close();
        refused(StoreException.Configuration.class, "give another `name`", () -> open("other", "name", "shared"));
        server.say("SET aiodb:foreign:store something");
        refused(StoreException.Configuration.class, "no store of this kind", () -> open("third", "name", "foreign"));
        String marker = server.say("GET aiodb:shared:store").lines().skip(1).findFirst().orElseThrow();
        server.say("SET aiodb:shared:store \"" + marker.replaceFirst("^1 ", "2 ") + "\"");
        refused(StoreException.NewerVersion.class, "format 2", () -> open("store", "name", "shared"));
        server.say("SET aiodb:shared:store \"" + marker.replaceFirst("^1 ", "0 ") + "\"");
        refused(StoreException.Configuration.class, "format 0", () -> open("store", "name", "shared"));
    }

    @Test
    void aDirectoryOfAnotherKindIsRefused() throws IOException {
        start();
        Path other = Files.createDirectories(directory.resolve("other"));
        Files.writeString(other.resolve("STORE"), "kind=paper\nid=" + UUID.randomUUID() + "\n");
        refused(StoreException.Configuration.class, "kind paper", () -> open("other"));
        Files.writeString(other.resolve("STORE"), "torn");
        refused(StoreException.Configuration.class, "identity", () -> open("other"));
    }

    /** Whoever has a copy of the directory takes the store over; what the first one does is refused from then on. */
    @Test
    void aStoreHasOneProcessAtATime() throws IOException {
        start();
        try (Store first = open("store")) {
            Table table = first.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            Files.createDirectories(directory.resolve("copy"));
            Files.copy(directory.resolve("store/STORE"), directory.resolve("copy/STORE"));
            try (Store second = open("copy")) {
                assertThrows(
                        StoreException.Unavailable.class, () -> table.put(bytes("a"), bytes("2"), Durability.SYNC));
                refused(StoreException.Unavailable.class, "another process", () -> table.get(bytes("a")));
                assertArrayEquals(bytes("1"), second.table("rows").get(bytes("a")));
            }
        }
    }

    @Test
    void snapshotsThatWouldCostMoreThanAskedAreEnded() {
        start();
        try (Store store = open("store", "history_bytes", "10000")) {
            Table table = store.createTable("rows");
            for (int row = 0; row < ROWS; row++) {
                table.put(bytes(String.format("%03d", row)), new byte[100], Durability.SYNC);
            }
            Snapshot snapshot = store.snapshot();
            Rows scan = table.scan(Range.all());
            for (int row = 0; row < ROWS; row++) {
                table.put(bytes(String.format("%03d", row)), bytes("new"), Durability.SYNC);
            }
            refused(StoreException.SnapshotEnded.class, "history_bytes", () -> snapshot.get(table, bytes("000")));
            refused(StoreException.SnapshotEnded.class, "history_bytes", () -> count(scan));
            snapshot.close();
            scan.close();
            Snapshot another = store.snapshot();
            table.deleteRange(new byte[0], new byte[0], Durability.SYNC);
            assertEquals(ROWS, count(another.scan(table, Range.all())), "it has room for so much");
            table.put(bytes("long"), new byte[20_000], Durability.SYNC);
            assertNull(another.get(table, bytes("long")));
            table.delete(bytes("long"), Durability.SYNC);
            refused(StoreException.SnapshotEnded.class, "history_bytes", () -> another.get(table, bytes("000")));
        }
    }

    @Test
    void anAppendThatMakesAValueTooLongChangesNothing() {
        start();
        try (Store store = open("store", "name", "long", "timeout_millis", "120000")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server.say("SETRANGE aiodb:long:row:1:a " + (RedisStore.MAX_VALUE_BYTES - 3) + " xx");
            Batch batch = new Batch()
                    .put(table, ByteBuffer.wrap(bytes("b")), ByteBuffer.wrap(bytes("2")))
                    .append(table, ByteBuffer.wrap(bytes("a")), ByteBuffer.wrap(bytes("y")))
                    .append(table, ByteBuffer.wrap(bytes("a")), ByteBuffer.wrap(bytes("z")));
            refused(
                    StoreException.Limit.class,
                    Integer.toString(RedisStore.MAX_VALUE_BYTES + 1),
                    () -> store.write(batch, Durability.SYNC));
            assertNull(table.get(bytes("b")));
        }
    }

    @Test
    void aBatchOfMoreOperationsThanTheServerTakesIsRefused() {
        start();
        try (Store store = open("store", "timeout_millis", "120000")) {
            Table table = store.createTable("rows");
            Batch batch = new Batch();
            for (int row = 0; row < RedisStore.MAX_OPERATIONS; row++) {
                batch.put(table, ByteBuffer.wrap(bytes("key " + row)), ByteBuffer.wrap(bytes("value")));
            }
            store.write(batch, Durability.SYNC);
            assertEquals(RedisStore.MAX_OPERATIONS, table.estimatedRows());
            batch.delete(table, ByteBuffer.wrap(bytes("key 0")));
            refused(StoreException.Limit.class, "split it", () -> store.write(batch, Durability.SYNC));
        }
    }

    @Test
    void rowsOfTruncatedAndDroppedTablesAreDeletedOnTheServer() {
        start();
        try (Store store = open("store")) {
            String empty = server.say("DBSIZE").lines().findFirst().orElseThrow();
            Table table = store.createTable("rows");
            Batch batch = new Batch();
            for (int row = 0; row < 3000; row++) {
                batch.put(table, ByteBuffer.wrap(bytes("key " + row)), ByteBuffer.wrap(bytes("value")));
            }
            store.write(batch, Durability.SYNC);
            Snapshot snapshot = store.snapshot();
            table.truncate();
            assertEquals(3000, count(snapshot.scan(table, Range.all())));
            snapshot.close();
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            table.drop();
            // Two counters that there were not before.
            int before = Integer.parseInt(empty.substring(1));
            retried(() -> assertEquals(":" + (before + 2), server.say("DBSIZE").lines().findFirst().orElseThrow()));
        }
    }

    private String configured(String name) {
        return server.say("CONFIG GET " + name).lines().skip(4).findFirst().orElse("");
    }

    private void signal(String name) throws Exception {
        assertEquals(0, new ProcessBuilder("kill", "-" + name, Long.toString(server.pid())).start().waitFor());
    }

    /** Does something again until it succeeds; a call soon after a failed connection may fail once more. */
    private static void retried(Runnable body) {
        for (int round = 0; ; round++) {
            try {
                body.run();
                return;
            } catch (StoreException.Unavailable | AssertionError notYet) {
                if (round == ROWS) {
                    throw notYet;
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(50);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    private static int count(Rows rows) {
        int count = 0;
        try (rows) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
