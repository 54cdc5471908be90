package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The disk of a store fills up: writes are refused, reads and other tables go on, and so do writes once there is space. */
@Tag("long")
final class FullDiskTest {
    private static final int NETWORK = 96;
    private static final int ROW_BYTES = 1_000_000;

    /** More than the small disk takes. */
    private static final int MANY = 400;

    private static final int TRIES = 60;
    private static final int TRY_MS = 1000;

    @Test
    void writesAreRefusedUntilThereIsSpace() throws IOException, InterruptedException {
        Path disk = Files.createTempDirectory("aiodb-full-disk");
        Assumptions.assumeTrue(mount("-t", "tmpfs", "-o", "size=300m", "tmpfs", disk.toString()), "only root may mount");
        try {
            run(disk);
        } finally {
            end("umount", "--lazy", disk.toString());
            Files.delete(disk);
        }
    }

    private static void run(Path disk) throws IOException, InterruptedException {
        String directory = "directory: " + disk.resolve("store");
        try (Nodes nodes = new Nodes(NETWORK, 1, "", Map.of("PARAMETERS", directory))) {
            Set<Integer> acknowledged = new TreeSet<>();
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE filled WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE filled.rows (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'");
                session.execute("CREATE TABLE filled.others (id int PRIMARY KEY, v blob)");
                PreparedStatement insert = session.prepare("INSERT INTO filled.rows (id, v) VALUES (?, ?)");
                DriverException refused = fill(session, insert, acknowledged);
                assertNotNull(refused, "a disk of 300 MB took " + MANY + " MB");
                assertTrue(acknowledged.size() > 50, acknowledged + " and then " + refused);
                // Not all at once: the store ends long scans when it needs the space that they hold.
                assertRows(session, acknowledged);
                session.execute("INSERT INTO filled.others (id, v) VALUES (1, 0x00)");
                assertTrue(mount("-o", "remount,size=600m", disk.toString()));
                writeAgain(session, insert, acknowledged);
                assertRows(session, acknowledged);
            }
            nodes.restart(1);
            try (CqlSession session = nodes.session(1)) {
                assertRows(session, acknowledged);
            }
        }
    }

    /** Writes until a write is refused, and says how. */
    private static DriverException fill(CqlSession session, PreparedStatement insert, Set<Integer> acknowledged) {
        for (int row = 0; row < MANY; row++) {
            try {
                session.execute(insert.bind(row, ByteBuffer.allocate(ROW_BYTES)));
                acknowledged.add(row);
            } catch (DriverException refused) {
                return refused;
            }
        }
        return null;
    }

    private static void writeAgain(CqlSession session, PreparedStatement insert, Set<Integer> acknowledged)
            throws InterruptedException {
        DriverException refused = null;
        for (int attempt = 0; attempt < TRIES; attempt++) {
            try {
                session.execute(insert.bind(MANY, ByteBuffer.allocate(ROW_BYTES)));
                acknowledged.add(MANY);
                return;
            } catch (DriverException still) {
                refused = still;
                Thread.sleep(TRY_MS);
            }
        }
        throw new AssertionError("writes are still refused, though there is space", refused);
    }

    /** All that were acknowledged are there; one that was refused may be. */
    private static void assertRows(CqlSession session, Set<Integer> acknowledged) {
        Set<Integer> found = new TreeSet<>();
        for (Row row : session.execute("SELECT id FROM filled.rows")) {
            found.add(row.getInt("id"));
        }
        assertTrue(found.containsAll(acknowledged), found + " where there should be " + acknowledged);
        assertTrue(found.size() <= acknowledged.size() + 1, found + " where there should be " + acknowledged);
        for (int row : acknowledged) {
            Row read = session.execute("SELECT v FROM filled.rows WHERE id = " + row).one();
            assertEquals(ROW_BYTES, read.getByteBuffer("v").remaining());
        }
    }

    private static boolean mount(String... arguments) throws IOException, InterruptedException {
        String[] command = new String[arguments.length + 1];
        command[0] = "mount";
        System.arraycopy(arguments, 0, command, 1, arguments.length);
        return end(command) == 0;
    }

    private static int end(String... command) throws IOException, InterruptedException {
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }
}
