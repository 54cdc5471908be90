package io.aiodb.store.mysql;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.aiodb.store.Batch;
import io.aiodb.store.Durability;
import io.aiodb.store.Range;
import io.aiodb.store.Rows;
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
import java.util.Set;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a store makes of the states that its server can be in. */
final class MysqlServerTest extends MysqlServerContract {
    private static MysqlProcess server;

    @BeforeAll
    static void start(@TempDir Path files) {
        server = new MysqlProcess(files);
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Override
    protected ServerProcess server() {
        return server;
    }

    @Test
    void aServerWithoutTheRowsIsNotAnEmptyStore() {
        try (Store store = open("store", "database", "emptied")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server.say("DROP DATABASE emptied");
            assertThrows(StoreException.Unavailable.class, () -> table.get(bytes("a")));
            assertThrows(StoreException.Unavailable.class, () -> table.scan(Range.all()));
            assertThrows(StoreException.Unavailable.class, store::snapshot);
            assertThrows(
                    StoreException.Unavailable.class, () -> table.put(bytes("b"), bytes("2"), Durability.SYNC));
        }
        refused(StoreException.Unavailable.class, "bring the server's data back", () -> open("store", "database", "emptied"));
        server.say("CREATE DATABASE emptied");
        refused(StoreException.Unavailable.class, "bring the server's data back", () -> open("store", "database", "emptied"));
    }

    @Test
    void aServerThatKeepsRowsLessWellIsRefused(@TempDir Path files) {
        for (String value : List.of("0", "2")) {
            server.say("SET GLOBAL innodb_flush_log_at_trx_commit = " + value);
            refused(StoreException.Configuration.class, "innodb_flush_log_at_trx_commit` is " + value, () -> open("weak"));
        }
        server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
        refused(StoreException.Configuration.class, "set it to 1 or 2", () -> open("weak", "durability", "interval"));
        server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        server.say("SET GLOBAL read_only = ON");
        refused(StoreException.Configuration.class, "read_only", () -> open("weak"));
        server.say("SET GLOBAL read_only = OFF");
        open("weak").close();
        String[] weaker = {"--skip-innodb-doublewrite", "--log-bin", "--sync-binlog=0", "--innodb-flush-method=nosync"};
        try (MysqlProcess weak = new MysqlProcess(files, weaker)) {
            for (String word : List.of("innodb_doublewrite", "sync_binlog", "innodb_flush_method")) {
                refused(StoreException.Configuration.class, "`" + word + "` is", () -> open(weak, "weaker"));
            }
            open(weak, "none", "durability", "none").close();
        }
    }

    /** As when its configuration file was changed while it was down. */
    @Test
    void aServerThatHasBecomeWeakerIsNotWrittenTo() {
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            Runnable put = () -> table.put(bytes("a"), bytes("1"), Durability.SYNC);
            server.kill();
            server.start();
            server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
            // For a moment after a connection has failed, calls answer with that failure and do not ask the server.
            retried(() -> refused(StoreException.Unavailable.class, "innodb_flush_log_at_trx_commit` is 2", put));
            server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
            retried(put);
        } finally {
            server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        }
    }

    @Test
    void aServerThatSyncsEverySecondIsWaitedForByWritesOfClassSync() {
        server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
        try (Store store = open("store", "durability", "interval")) {
            assertEquals(Set.of(Durability.SYNC, Durability.INTERVAL), store.capabilities().durabilities());
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.INTERVAL);
            table.put(bytes("b"), bytes("2"), Durability.SYNC);
            long synced = position("Innodb_lsn_flushed");
            table.put(bytes("c"), bytes("3"), Durability.INTERVAL);
            store.sync();
            assertTrue(position("Innodb_lsn_flushed") > synced, "what came last is synced, too");
        } finally {
            server.say("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
        }
    }

    private static long position(String name) {
        return Long.parseLong(server.say("SELECT variable_value FROM information_schema.global_status WHERE variable_name = '"
                + name + "'").get(0));
    }

    @Test
    void aWrongPasswordIsRefused() throws IOException {
        Path file = directory.resolve("password");
        Files.writeString(file, "wrong\n");
        refused(
                StoreException.Configuration.class, "password_file", () -> open("store", "password_file", file.toString()));
        refused(StoreException.Configuration.class, "cannot read", () -> open("store", "password_file", file + "s"));
        refused(StoreException.Configuration.class, "database = a`b", () -> open("store", "database", "a`b"));
    }

    @Test
    void aUserWhoMayNotIsToldSo() throws IOException {
        server.say("CREATE USER weak@localhost IDENTIFIED BY '" + MysqlProcess.PASSWORD + "'");
        refused(StoreException.Configuration.class, "grant", () -> open("store", "user", "weak"));
        server.say("CREATE DATABASE granted");
        server.say("GRANT ALL ON granted.* TO weak@localhost");
        open("store", "user", "weak", "database", "granted").close();
    }

    @Test
    void whatIsNotTheStoresIsLeftAlone() {
        open("store", "database", "shared").close();
        refused(StoreException.Configuration.class, "another `database`", () -> open("other", "database", "shared"));
        server.say("UPDATE shared.store SET format = 2");
        refused(StoreException.NewerVersion.class, "format 2", () -> open("store", "database", "shared"));
        server.say("UPDATE shared.store SET format = 0");
        refused(StoreException.Configuration.class, "format 0", () -> open("store", "database", "shared"));
        server.say("CREATE DATABASE foreigner");
        server.say("CREATE TABLE foreigner.customers (id INT)");
        refused(StoreException.Configuration.class, "customers", () -> open("third", "database", "foreigner"));
        server.say("CREATE TABLE foreigner.store (id INT)");
        refused(StoreException.Configuration.class, "another form", () -> open("third", "database", "foreigner"));
        assertEquals(List.of("customers", "store"), server.say("SHOW TABLES FROM foreigner"));
    }

    @Test
    void whatWouldFoldKeysIsRefused() {
        server.say("CREATE DATABASE folding CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci");
        try (Store store = open("store", "database", "folding")) {
            Table table = store.createTable("rows");
            List<String> keys = List.of("A", "a", "a ", "a\0", "\u00e4", "\u00c4");
            keys.forEach(key -> table.put(bytes(key), bytes(key), Durability.SYNC));
            keys.forEach(key -> assertArrayEquals(bytes(key), table.get(bytes(key))));
            assertEquals(keys.size(), count(table.scan(Range.all())));
        }
        String alter = "ALTER TABLE folding.rows_1 ";
        server.say(alter + "MODIFY v LONGTEXT CHARACTER SET latin1 NOT NULL");
        refused(StoreException.Configuration.class, "longblob", () -> open("store", "database", "folding"));
        server.say(alter + "MODIFY v LONGBLOB NOT NULL");
        server.say("DELETE FROM folding.rows_1 WHERE k <> 'a'");
        server.say(alter + "MODIFY k VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL");
        refused(StoreException.Configuration.class, "does not keep all bytes apart", () -> open("store", "database", "folding"));
        server.say(alter + "MODIFY k VARBINARY(3072) NOT NULL");
        open("store", "database", "folding").close();
        server.say("ALTER TABLE folding.tables ENGINE=Aria");
        refused(StoreException.Configuration.class, "InnoDB", () -> open("store", "database", "folding"));
    }

    @Test
    void moreSnapshotsThanAskedForAreRefused() {
        try (Store store = open("store", "views", "2")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            Snapshot first = store.snapshot();
            Snapshot second = store.snapshot();
            refused(StoreException.Limit.class, "`views`", store::snapshot);
            assertEquals(1, count(table.scan(Range.all())), "a short scan needs none");
            first.close();
            store.snapshot().close();
            second.close();
        }
    }

    @Test
    void valuesAreTakenUpToTheServersPackets() {
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            byte[] longest = new byte[store.capabilities().maxValueBytes()];
            byte[] key = new byte[store.capabilities().maxKeyBytes()];
            table.put(key, longest, Durability.SYNC);
            assertEquals(longest.length, table.get(key).length);
            try (Rows rows = table.scan(Range.all())) {
                assertTrue(rows.next());
                assertEquals(longest.length, rows.value().remaining());
            }
            Batch batch = new Batch()
                    .put(table, ByteBuffer.wrap(bytes("b")), ByteBuffer.wrap(bytes("2")))
                    .append(table, ByteBuffer.wrap(key), ByteBuffer.wrap(bytes("x")));
            refused(StoreException.Limit.class, "longer", () -> store.write(batch, Durability.SYNC));
            assertNull(table.get(bytes("b")));
            assertThrows(
                    StoreException.Limit.class,
                    () -> table.put(key, new byte[longest.length + 1], Durability.SYNC));
        }
    }

    @Test
    void rowsOfTruncatedAndDroppedTablesAreDroppedOnTheServer() {
        try (Store store = open("store", "database", "removing")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            try (Snapshot snapshot = store.snapshot()) {
                table.truncate();
                assertEquals(1, count(snapshot.scan(table, Range.all())));
            }
            retried(() -> assertEquals(List.of("rows_2", "store", "tables"), server.say("SHOW TABLES FROM removing")));
            table.drop();
            retried(() -> assertEquals(List.of("store", "tables"), server.say("SHOW TABLES FROM removing")));
        }
    }
}
