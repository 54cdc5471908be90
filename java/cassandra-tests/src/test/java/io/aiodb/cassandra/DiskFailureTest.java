package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The file system of a store fails, which ext4 does when it is told to (as root, since others may not mount), or gives back
 * other bytes than were written: {@code disk_failure_policy} says what the node does then.
 */
@Tag("long")
final class DiskFailureTest {
    private static final int NETWORK = 100;
    private static final int ROWS = 20_000;
    private static final int ROW_BYTES = 1000;
    private static final int DAMAGED_ROW = 100;
    private static final String DISK_BYTES = "1G";

    /** Has ext4 answer everything with an error from now on (EXT4_IOC_SHUTDOWN, without writing its journal). */
    private static final String FAIL =
            "my $how = pack('L', 2); open(my $at, '<', $ARGV[0]) or die; ioctl($at, 0x8004587D, $how) or die $!";

    private static final int LOOKS = 300;
    private static final int LOOK_MS = 1000;

    @ParameterizedTest
    @ValueSource(strings = {"ignore", "stop", "die"})
    void theNodeDoesWhatItsPolicySays(String policy, @TempDir Path directory) throws IOException, InterruptedException {
        Path image = directory.resolve("disk.img");
        Path disk = Files.createDirectory(directory.resolve("disk"));
        run("fallocate", "--length", DISK_BYTES, image.toString());
        run("mkfs.ext4", "-q", image.toString());
        Assumptions.assumeTrue(
                end("mount", "-o", "loop", image.toString(), disk.toString()) == 0, "only root may mount");
        Map<String, String> parameters = Map.of("PARAMETERS", "directory: " + disk.resolve("store"));
        try (Nodes nodes = new Nodes(NETWORK, 1, "disk_failure_policy: " + policy + "\n", parameters)) {
            fill(nodes);
            fail(nodes, disk, policy);
            nodes.kill(1);
            // As an operator does with a disk that works again.
            unmount(disk);
            run("mount", "-o", "loop", image.toString(), disk.toString());
            nodes.start(1);
            try (CqlSession session = nodes.session(1, "failing")) {
                assertEquals(ROWS, session.execute("SELECT id FROM rows").all().size());
                session.execute("INSERT INTO rows (id, v) VALUES (-1, 0x00)");
            }
        } finally {
            end("umount", "--lazy", disk.toString());
        }
    }

    /** As with Cassandra's own files, only {@code stop_paranoid} and {@code die} end a node that finds damage. */
    @ParameterizedTest
    @ValueSource(strings = {"stop", "stop_paranoid", "die"})
    void theNodeDoesWithDamageWhatItsPolicySays(String policy) throws IOException, InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, 1, "disk_failure_policy: " + policy + "\n")) {
            fill(nodes);
            nodes.stop(1);
            Path damaged = damage(nodes.directory(1));
            nodes.start(1);
            try (CqlSession session = nodes.session(1, "failing")) {
                readOthers(session);
                assertThrows(DriverException.class, () -> read(session, DAMAGED_ROW));
                if (policy.equals("stop")) {
                    readOthers(session);
                    session.execute("INSERT INTO rows (id, v) VALUES (-1, 0x00)");
                } else {
                    awaitSilence(nodes);
                }
            }
            String log = assertNotCrashed(nodes);
            assertTrue(log.contains("CorruptSSTableException"), "the log does not say why");
            assertTrue(log.contains(damaged.toString()), "the log does not say where");
        }
    }

    /** Changes a byte of a row's value in the store. Returns the file that it lies in. */
    private static Path damage(Path node) throws IOException {
        ByteBuffer wanted = value(DAMAGED_ROW);
        try (Stream<Path> files = Files.list(node.resolve("data/aiodb-stores/aiodb/log"))) {
            for (Path file : files.toList()) {
                ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
                for (int at = 0; at + ROW_BYTES <= bytes.limit(); at++) {
                    if (bytes.slice(at, ROW_BYTES).equals(wanted)) {
                        bytes.put(at + ROW_BYTES / 2, (byte) ~bytes.get(at + ROW_BYTES / 2));
                        Files.write(file, bytes.array(), StandardOpenOption.WRITE);
                        return file;
                    }
                }
            }
        }
        throw new AssertionError("the store does not have the row's value");
    }

    /** Some rows that are not the damaged one. */
    private static void readOthers(CqlSession session) {
        for (int row = 0; row < DAMAGED_ROW; row++) {
            assertEquals(value(row), read(session, row));
        }
    }

    private static ByteBuffer read(CqlSession session, int row) {
        return session.execute("SELECT v FROM rows WHERE id = " + row).one().getByteBuffer("v");
    }

    /** Differs from row to row. */
    private static ByteBuffer value(int row) {
        return ByteBuffer.allocate(ROW_BYTES).putInt(0, row);
    }

    private static void fill(Nodes nodes) {
        try (CqlSession session = nodes.session(1);
                Management management = nodes.management(1)) {
            session.execute("CREATE KEYSPACE failing WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE failing.rows (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'"
                    + " AND compression = {'enabled': false}");
            session.execute("CREATE TABLE failing.others (id int PRIMARY KEY, v blob)");
            PreparedStatement insert = session.prepare("INSERT INTO failing.rows (id, v) VALUES (?, ?)");
            for (int row = 0; row < ROWS; row++) {
                session.execute(insert.bind(row, value(row)));
            }
            session.execute("INSERT INTO failing.others (id, v) VALUES (1, 0x01)");
            management.flush("failing");
        }
    }

    private static void fail(Nodes nodes, Path disk, String policy) throws IOException, InterruptedException {
        try (CqlSession session = nodes.session(1, "failing")) {
            run("perl", "-e", FAIL, disk.toString());
            // The client is told; what was read is none of the rows.
            assertThrows(DriverException.class, () -> readAll(session));
            switch (policy) {
                case "ignore" -> {
                    assertEquals(1, session.execute("SELECT v FROM others WHERE id = 1").all().size());
                    assertTrue(nodes.listens(1));
                }
                case "stop" -> {
                    awaitSilence(nodes);
                    // It can still be asked what is wrong.
                    assertTrue(nodes.nodetool(1, "statusbinary").contains("not running"));
                }
                default -> awaitSilence(nodes);
            }
        }
        assertTrue(assertNotCrashed(nodes).contains("FSReadError"), "the log does not say why");
    }

    /** The node's log; a virtual machine that crashes leaves another one. */
    private static String assertNotCrashed(Nodes nodes) throws IOException {
        Path crash = nodes.directory(1).resolve("crash.log");
        assertFalse(Files.exists(crash), "the virtual machine has crashed: see " + crash);
        return Files.readString(nodes.directory(1).resolve("system.log"));
    }

    private static void readAll(CqlSession session) {
        for (int row = 0; row < ROWS; row++) {
            session.execute("SELECT v FROM rows WHERE id = " + row);
        }
    }

    /** Until it does not take connections of clients any more. */
    private static void awaitSilence(Nodes nodes) throws InterruptedException {
        for (int look = 0; nodes.listens(1); look++) {
            assertTrue(look < LOOKS, "the node goes on serving clients");
            Thread.sleep(LOOK_MS);
        }
    }

    /** The kernel may still be ending what the node was doing there. */
    private static void unmount(Path disk) throws IOException, InterruptedException {
        for (int look = 0; end("umount", disk.toString()) != 0; look++) {
            assertTrue(look < LOOKS, disk + " stays in use");
            Thread.sleep(LOOK_MS);
        }
    }

    private static void run(String... command) throws IOException, InterruptedException {
        assertEquals(0, end(command), String.join(" ", command));
    }

    private static int end(String... command) throws IOException, InterruptedException {
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }
}
