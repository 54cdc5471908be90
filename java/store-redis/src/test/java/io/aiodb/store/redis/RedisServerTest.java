package io.aiodb.store.redis;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
import io.aiodb.store.ServerContract;
import io.aiodb.store.ServerProcess;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What a store makes of the states that its server can be in. */
final class RedisServerTest extends ServerContract {
    private RedisProcess server;

    RedisServerTest() {
        super("redis");
    }

    @BeforeEach
    void start() {
        server = new RedisProcess(directory.resolve("server"));
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private void restart(String... options) {
        server.close();
        server = new RedisProcess(directory.resolve("server"), options);
    }

    @Override
    protected ServerProcess server() {
        return server;
    }

    @Override
    protected String late() {
        return "2000 ms";
    }

    @Override
    protected String takenOver() {
        return "opened elsewhere";
    }

    @Override
    protected List<Runnable> refusedWhenTakenOver(Table table) {
        return List.of(() -> table.get(bytes("a")));
    }

    @Test
    void aServerWithoutTheRowsIsNotAnEmptyStore() throws IOException {
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
        restart("--appendfsync", "everysec");
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
        restart("--requirepass", "right");
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
    void snapshotsThatWouldCostMoreThanAskedAreEnded() {
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
}
