package io.aiodb.store.mysql;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.aiodb.store.Durability;
import io.aiodb.store.ServerProcess;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.Table;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The states of a server whose rows are read through its plugin HandlerSocket. */
final class MysqlDirectServerTest extends MysqlServerContract {
    private static MysqlProcess server;

    @BeforeAll
    static void start(@TempDir Path files) {
        server = MysqlProcess.withHandlerSocket(files);
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
    void aServerWithoutThePluginIsRefused(@TempDir Path files) throws IOException {
        try (MysqlProcess plain = new MysqlProcess(files)) {
            String port = plain.parameters().get("port");
            refused(
                    StoreException.Configuration.class,
                    "plugin_load_add",
                    () -> open(plain, "plain", "access", "direct", "direct_port", Integer.toString(Integer.parseInt(port) + 1)));
        }
        Path secret = directory.resolve("secret");
        Files.writeString(secret, "wrong\n");
        refused(
                StoreException.Configuration.class,
                "direct_secret_file",
                () -> open("store", "direct_secret_file", secret.toString()));
    }

    @Test
    void allBytesComeAsTheyWereWritten() {
        try (Store store = open("store")) {
            Table table = store.createTable("rows");
            byte[] all = new byte[512];
            for (int at = 0; at < all.length; at++) {
                all[at] = (byte) at;
            }
            byte[] longest = new byte[1 << 20];
            new Random(1).nextBytes(longest);
            for (byte[] value : List.of(new byte[0], new byte[] {0}, new byte[] {1}, new byte[] {9, 10, 13}, all, longest)) {
                table.put(all, value, Durability.SYNC);
                assertArrayEquals(value, table.get(all));
                byte[] key = {0};
                table.put(key, value, Durability.SYNC);
                assertArrayEquals(value, table.get(key));
            }
            assertNull(table.get(new byte[] {0, 0}));
            byte[] key = new byte[store.capabilities().maxKeyBytes()];
            table.put(key, bytes("1"), Durability.SYNC);
            assertArrayEquals(bytes("1"), table.get(key));
        }
    }

    /** The plugin would keep a table that a connection has open. */
    @Test
    void rowsOfDroppedTablesAreDroppedOnTheServer() {
        try (Store store = open("store", "database", "removing")) {
            Table table = store.createTable("rows");
            table.put(bytes("a"), bytes("1"), Durability.SYNC);
            assertArrayEquals(bytes("1"), table.get(bytes("a")));
            table.truncate();
            assertNull(table.get(bytes("a")));
            retried(() -> assertEquals(List.of("rows_2", "store", "tables"), server.say("SHOW TABLES FROM removing")));
            table.drop();
            retried(() -> assertEquals(List.of("store", "tables"), server.say("SHOW TABLES FROM removing")));
            assertThrows(StoreException.NoSuchTable.class, () -> table.get(bytes("a")));
        }
    }
}
