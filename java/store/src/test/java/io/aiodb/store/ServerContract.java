package io.aiodb.store;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What every store whose rows lie on a server makes of the states that the server can be in. A module of such a store extends
 * this, and adds what only its server can be like.
 */
public abstract class ServerContract {
    protected static final int ROWS = 200;

    private static final int ROUNDS = 200;
    private static final long PAUSE_MILLIS = 50;

    @TempDir
    protected Path directory;

    private final String kind;

    protected ServerContract(String kind) {
        this.kind = kind;
    }

    /** The server, which runs. */
    protected abstract ServerProcess server();

    /** A word for a server that has not answered in the 2000 ms that it may take. */
    protected abstract String late();

    /** A word for a store that was opened elsewhere, as the first write after that says it. */
    protected abstract String takenOver();

    /** What else is refused of a table once the store was opened elsewhere. */
    protected List<Runnable> refusedWhenTakenOver(Table table) {
        return List.of();
    }

    /** Opens the store in a directory of this name; the parameters are names and values in turn. */
    protected final Store open(String name, String... parameters) {
        return open(server(), name, parameters);
    }

    /** As {@link #open(String, String...)}, on another server. */
    protected final Store open(ServerProcess of, String name, String... parameters) {
        Map<String, String> given = new HashMap<>(of.parameters());
        for (int at = 0; at < parameters.length; at += 2) {
            given.put(parameters[at], parameters[at + 1]);
        }
        return Stores.open(kind, directory.resolve(name), given);
    }

    @Test
    void aServerThatIsDownFailsCallsUntilItIsBack() {
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            Snapshot snapshot = store.snapshot();
            server().kill();
            List<Runnable> calls = List.of(
                    () -> table.get(bytes("a")),
                    () -> table.get(bytes("never there")),
                    () -> table.put(bytes("b"), bytes("2"), Durability.SYNC),
                    () -> table.scan(Range.all()),
                    table::estimatedRows,
                    table::truncate,
                    store::snapshot,
                    store::sync,
                    store::statistics,
                    () -> store.createTable("other"));
            for (Runnable call : calls) {
                assertThrows(StoreException.Unavailable.class, call::run);
            }
            assertThrows(StoreException.SnapshotEnded.class, () -> snapshot.get(table, bytes("a")));
            server().start();
            retried(() -> assertArrayEquals(bytes("1"), table.get(bytes("a"))));
            assertThrows(StoreException.SnapshotEnded.class, () -> snapshot.get(table, bytes("a")));
            assertThrows(StoreException.SnapshotEnded.class, () -> count(snapshot.scan(table, Range.all())));
            table.put(bytes("b"), bytes("2"), Durability.SYNC);
            assertEquals(List.of("rows"), store.tableNames());
            assertEquals(2, table.estimatedRows());
        }
    }

    @Test
    void noAcknowledgedWriteIsLostWithTheServer() throws InterruptedException {
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
            server().kill();
            server().start();
            writer.join();
            for (int row : acknowledged) {
                retried(() -> assertArrayEquals(bytes("value " + row), table.get(bytes("key " + row))));
            }
            assertTrue(acknowledged.size() >= ROWS, acknowledged.size() + " were acknowledged");
        }
    }

    @Test
    void aServerThatHangsIsNotWaitedForLongerThanAsked() {
        try (Store store = open("store", "timeout_millis", "2000")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server().signal("STOP");
            try {
                refused(StoreException.Unavailable.class, late(), () -> table.get(bytes("a")));
                assertThrows(
                        StoreException.Unavailable.class, () -> table.put(bytes("a"), bytes("2"), Durability.SYNC));
            } finally {
                // The other tests need it.
                server().signal("CONT");
            }
            retried(() -> assertArrayEquals(bytes("1"), table.get(bytes("a"))));
        }
    }

    /** One looks whether the server is back, for as long as an answer may take; the others are told meanwhile that it is not. */
    @Test
    void callsDoNotWaitForTheOneThatLooks() throws InterruptedException {
        try (Store store = open("store", "timeout_millis", "5000")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server().signal("STOP");
            try {
                Runnable call = () -> assertThrows(StoreException.Unavailable.class, () -> table.get(bytes("a")));
                call.run();
                Thread one = new Thread(call);
                Thread other = new Thread(call);
                pause();
                pause();
                one.start();
                other.start();
                while (one.isAlive() && other.isAlive()) {
                    pause();
                }
                for (int pauses = 0; pauses < 10; pauses++) {
                    pause();
                }
                assertTrue(one.isAlive() || other.isAlive(), "both have waited for the same answer");
                one.join();
                other.join();
            } finally {
                // The other tests need it.
                server().signal("CONT");
            }
            retried(() -> assertArrayEquals(bytes("1"), table.get(bytes("a"))));
        }
    }

    @Test
    void aDirectoryOfAnotherKindIsRefused() throws IOException {
        Path other = Files.createDirectories(directory.resolve("other"));
        Files.writeString(other.resolve("STORE"), "kind=paper\nid=" + UUID.randomUUID() + "\n");
        refused(StoreException.Configuration.class, "kind paper", () -> open("other"));
        Files.writeString(other.resolve("STORE"), "torn");
        refused(StoreException.Configuration.class, "identity", () -> open("other"));
    }

    /** Unlike a copy that says nothing of its owner, this one leaves the store to its process. */
    @Test
    void aDirectoryOfAnotherOwnerIsRefused() throws IOException {
        try (Store first = open("store", "owner", "one")) {
            Table table = first.createTable("rows");
            Files.createDirectories(directory.resolve("copy"));
            Files.copy(directory.resolve("store/STORE"), directory.resolve("copy/STORE"));
            refused(StoreException.Configuration.class, "belongs to one", () -> open("copy", "owner", "two"));
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
        }
        refused(StoreException.Configuration.class, "belongs to one", () -> open("store", "owner", "two"));
        open("store", "owner", "one").close();
    }

    /** A process with a copy of the directory takes the store over; calls of the first process are refused from then on. */
    @Test
    void aStoreHasOneProcessAtATime() throws IOException {
        try (Store first = open("store")) {
            Table table = first.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            Files.createDirectories(directory.resolve("copy"));
            Files.copy(directory.resolve("store/STORE"), directory.resolve("copy/STORE"));
            try (Store second = open("copy")) {
                refused(
                        StoreException.Unavailable.class,
                        takenOver(),
                        () -> table.put(bytes("a"), bytes("2"), Durability.SYNC));
                for (Runnable call : refusedWhenTakenOver(table)) {
                    refused(StoreException.Unavailable.class, "another process", call);
                }
                retried(() -> refused(StoreException.Unavailable.class, "another process", table::truncate));
                retried(() -> refused(StoreException.Unavailable.class, "another process", table::drop));
                assertArrayEquals(bytes("1"), second.table("rows").get(bytes("a")));
            }
        }
    }

    /** A call fails in this way, and says this word. */
    protected static <T extends StoreException> void refused(Class<T> kind, String word, Runnable call) {
        T refused = assertThrows(kind, call::run);
        assertTrue(refused.getMessage().contains(word), refused.getMessage());
    }

    /** Does something again until it succeeds; a call soon after a failed connection may fail once more. */
    protected static void retried(Runnable body) {
        for (int round = 0; ; round++) {
            try {
                body.run();
                return;
            } catch (StoreException.Unavailable | AssertionError notYet) {
                if (round == ROUNDS) {
                    throw notYet;
                }
                pause();
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MILLIS);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted", interruption);
        }
    }

    /** How many rows there are; closes them. */
    protected static int count(Rows rows) {
        int count = 0;
        try (rows) {
            while (rows.next()) {
                count++;
            }
        }
        return count;
    }

    protected static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
