package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Tables that were made, written to, truncated and dropped leave nothing behind in a node that goes on. */
@Tag("long")
final class CyclesTest {
    private static final int NETWORK = 95;
    private static final String SETTINGS = "auto_snapshot: false\n";

    private static final int FIRST = 50;
    private static final int CYCLES = 500;
    private static final int ROWS = 20;

    /** Threads and connections that Cassandra opens and closes as it likes. */
    private static final int FEW = 30;

    /** Far more than a few tables need, and far less than if each of so many left a megabyte. */
    private static final long MEMORY_BYTES = 300L << 20;

    /** What a node has. The files are those of its stores: Cassandra keeps a directory of each table that there was. */
    private record Held(long files, long descriptors, long threads, long memoryBytes, int beans) {}

    @Test
    void nothingIsLeft() throws IOException, InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, 1, SETTINGS)) {
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE cycles WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE cycles.kept (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
                session.execute("INSERT INTO cycles.kept (id, v) VALUES (1, 'kept')");
                cycle(session, FIRST);
                Held before = held(nodes);
                cycle(session, CYCLES);
                Held after = held(nodes);
                String both = before + ", after " + CYCLES + " cycles " + after;
                System.out.println("CyclesTest: " + both);
                assertEquals(before.beans, after.beans, both);
                assertTrue(after.files <= before.files + FEW, both);
                assertTrue(after.descriptors <= before.descriptors + FEW, both);
                assertTrue(after.threads <= before.threads + FEW, both);
                assertTrue(after.memoryBytes <= before.memoryBytes + MEMORY_BYTES, both);
                assertEquals(
                        "kept",
                        session.execute("SELECT v FROM cycles.kept WHERE id = 1").one().getString("v"));
            }
        }
    }

    private static void cycle(CqlSession session, int times) {
        for (int time = 0; time < times; time++) {
            session.execute("CREATE TABLE cycles.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
            PreparedStatement insert = session.prepare("INSERT INTO cycles.rows (id, v) VALUES (?, 'x')");
            for (int row = 0; row < ROWS; row++) {
                session.execute(insert.bind(row));
            }
            session.execute("TRUNCATE cycles.rows");
            assertEquals(0, session.execute("SELECT * FROM cycles.rows").all().size());
            session.execute(insert.bind(1));
            session.execute("DROP TABLE cycles.rows");
        }
    }

    private static Held held(Nodes nodes) throws IOException, InterruptedException {
        try (Management management = nodes.management(1)) {
            management.collectGarbage();
            Path process = Path.of("/proc", management.attribute("java.lang:type=Runtime", "Pid").toString());
            return new Held(
                    count(nodes.directory(1).resolve("data/aiodb-stores")),
                    list(process.resolve("fd")),
                    list(process.resolve("task")),
                    nodes.memoryBytes(1),
                    management.names("*:keyspace=cycles,*").size());
        }
    }

    private static long count(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.count();
        }
    }

    private static long list(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.count();
        }
    }
}
