package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.servererrors.InvalidConfigurationInQueryException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A node with two data directories has its store in both; and no node takes another one's store. */
@Tag("long")
final class StoreDirectoriesTest {
    private static final int NETWORK = 94;
    private static final String TWO = "data_file_directories: [DIRECTORY/disk1, DIRECTORY/disk2]";

    private static final int ROWS = 80;
    private static final int ROW_BYTES = 1_000_000;

    @Test
    void twoDirectoriesOfOneNode() throws IOException {
        Path kept = Files.createTempDirectory("aiodb-stores");
        try (Nodes nodes = new Nodes(NETWORK, 1, TWO)) {
            fill(nodes);
            nodes.restart(1);
            assertEquals(ROWS, count(nodes));
            for (String disk : new String[] {"disk1", "disk2"}) {
                assertNotEquals(0, segments(nodes.directory(1).resolve(disk)), "segments in " + disk);
            }
            assertDiskIsMissed(nodes);
            nodes.kill(1);
            copy(nodes.directory(1).resolve("disk1"), kept.resolve("disk1"));
            copy(nodes.directory(1).resolve("disk2"), kept.resolve("disk2"));
        }
        try (Nodes another = new Nodes(NETWORK, 1, TWO)) {
            copy(kept.resolve("disk1"), another.directory(1).resolve("disk1"));
            copy(kept.resolve("disk2"), another.directory(1).resolve("disk2"));
            assertRefused(another);
        } finally {
            delete(kept);
        }
    }

    private static void fill(Nodes nodes) {
        try (CqlSession session = nodes.session(1)) {
            create(session);
            PreparedStatement insert = session.prepare("INSERT INTO disks.rows (id, v) VALUES (?, ?)");
            for (int row = 0; row < ROWS; row++) {
                session.execute(insert.bind(row, ByteBuffer.allocate(ROW_BYTES)));
            }
        }
    }

    private static void create(CqlSession session) {
        session.execute("CREATE KEYSPACE IF NOT EXISTS disks WITH replication = "
                + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
        session.execute("CREATE TABLE disks.rows (id int PRIMARY KEY, v blob) WITH memtable = 'aiodb'");
    }

    private static int count(Nodes nodes) {
        try (CqlSession session = nodes.session(1)) {
            return session.execute("SELECT id FROM disks.rows").all().size();
        }
    }

    /** A node that starts without one of the disks says so, and has changed nothing when it is there again. */
    private static void assertDiskIsMissed(Nodes nodes) throws IOException {
        Path store = nodes.directory(1).resolve("disk2/aiodb-stores");
        Path aside = nodes.directory(1).resolve("aside");
        nodes.kill(1);
        Files.move(store, aside);
        String why = nodes.whyNotStarted(1, Map.of());
        assertNotNull(why, "the node started without half of its store");
        assertTrue(why.contains("2 directories"), why);
        Files.move(aside, store);
        nodes.start(1);
        assertEquals(ROWS, count(nodes));
    }

    private static void assertRefused(Nodes another) {
        try (CqlSession session = another.session(1)) {
            String message = assertThrows(InvalidConfigurationInQueryException.class, () -> create(session))
                    .getMessage();
            assertTrue(message.contains("belongs to the node"), message);
            // Nothing of the table is there.
            assertEquals(
                    0,
                    session.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'disks'")
                            .all()
                            .size());
        }
    }

    private static int segments(Path disk) throws IOException {
        try (Stream<Path> files = Files.list(disk.resolve("aiodb-stores/aiodb/log"))) {
            return (int) files.count();
        }
    }

    private static void copy(Path from, Path to) throws IOException {
        Path source = from.resolve("aiodb-stores");
        try (Stream<Path> files = Files.walk(source)) {
            for (Path file : files.toList()) {
                Path target = to.resolve(from.relativize(file).toString());
                Files.createDirectories(target.getParent());
                Files.copy(file, target);
            }
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
