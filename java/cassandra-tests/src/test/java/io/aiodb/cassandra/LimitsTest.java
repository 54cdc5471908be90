package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.IOException;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Wide partitions, large rows, long keys. */
@ExtendWith(SharedNode.class)
final class LimitsTest {
    private static final int WIDE_ROWS = 4_000;
    private static final int BATCH_ROWS = 200;

    @Test
    void widePartition(Nodes nodes) {
        try (Sides sides = new Sides(nodes, "wide")) {
            sides.succeed("CREATE TABLE wide (id int, c int, v text, PRIMARY KEY (id, c)) WITH MEMTABLE");
            for (int first = 0; first < WIDE_ROWS; first += BATCH_ROWS) {
                StringBuilder batch = new StringBuilder("BEGIN UNLOGGED BATCH ");
                for (int row = first; row < first + BATCH_ROWS; row++) {
                    int clustering = row * 7919 % WIDE_ROWS;
                    batch.append("INSERT INTO wide (id, c, v) VALUES (1, " + clustering + ", 'v" + row + "'); ");
                }
                sides.succeed(batch.append("APPLY BATCH").toString());
            }
            readWide(sides);
            sides.succeed("DELETE FROM wide WHERE id = 1 AND c >= 800 AND c < 2800");
            sides.succeed("INSERT INTO wide (id, c, v) VALUES (1, 2000, 'in the midst of what was deleted')");
            readWide(sides);
            sides.restart();
            readWide(sides);
        }
    }

    private static void readWide(Sides sides) {
        sides.succeed("SELECT count(*), max(c) FROM wide WHERE id = 1");
        sides.succeed("SELECT c, v FROM wide WHERE id = 1 LIMIT 1");
        sides.succeed("SELECT c, v FROM wide WHERE id = 1 ORDER BY c DESC LIMIT 1");
        sides.succeed("SELECT c, v FROM wide WHERE id = 1 AND c = 2000");
        sides.succeed("SELECT c, v FROM wide WHERE id = 1 AND c > 790 AND c < 2810 LIMIT 50");
        sides.succeed("SELECT c, v FROM wide WHERE id = 1 AND c > 790 AND c < 2810 ORDER BY c DESC LIMIT 50");
        sides.execute("SELECT c, v FROM wide", statement -> statement.setPageSize(777));
    }

    @Test
    void largeRows(Nodes nodes) {
        try (Sides sides = new Sides(nodes, "large")) {
            sides.succeed("CREATE TABLE large (id int, c int, v blob, w blob, PRIMARY KEY (id, c)) WITH MEMTABLE");
            for (int size : new int[] {1, 100, 4_000, 70_000, 1_000_000, 6_000_000}) {
                String value = "0x" + "5a".repeat(size);
                sides.succeed("INSERT INTO large (id, c, v) VALUES (1, " + size + ", " + value + ")");
                sides.succeed("UPDATE large SET w = 0x01 WHERE id = 1 AND c = " + size);
            }
            sides.succeed("SELECT * FROM large WHERE id = 1 AND c = 6000000");
            sides.succeed("SELECT * FROM large WHERE id = 1 AND c < 6000000");
            sides.restart();
            sides.succeed("SELECT * FROM large WHERE id = 1 AND c = 6000000");
            sides.succeed("DELETE v FROM large WHERE id = 1 AND c = 6000000");
            sides.succeed("SELECT * FROM large WHERE id = 1 AND c = 6000000");
        }
    }

    /** One update of one partition, of several megabytes. */
    @Test
    void largeBatch(Nodes nodes) {
        try (Sides sides = new Sides(nodes, "batches")) {
            sides.succeed("CREATE TABLE large (id int, c int, v text, PRIMARY KEY (id, c)) WITH MEMTABLE");
            StringBuilder batch = new StringBuilder("BEGIN UNLOGGED BATCH ");
            for (int row = 0; row < 1000; row++) {
                batch.append("INSERT INTO large (id, c, v) VALUES (1, " + row + ", '" + "y".repeat(6000) + "'); ");
            }
            sides.succeed(batch.append("APPLY BATCH").toString());
            sides.succeed("SELECT count(*) FROM large WHERE id = 1");
            sides.succeed("SELECT * FROM large WHERE id = 1 AND c > 900");
        }
    }

    /** Cassandra's own limits give the same error, and keys just below them are no error. */
    @Test
    void longKeys(Nodes nodes) {
        try (Sides sides = new Sides(nodes, "long")) {
            sides.succeed("CREATE TABLE keys (id text, c text, v int, PRIMARY KEY (id, c)) WITH MEMTABLE");
            assertNotNull(sides.execute(insert(65536, 1)).error());
            assertNotNull(sides.execute(insert(1, 65536)).error());
            for (int length : new int[] {1000, 10_000, 60_000}) {
                sides.succeed(insert(length, 1));
                sides.succeed(insert(1, length));
            }
            sides.succeed("SELECT * FROM keys");
            sides.succeed("SELECT v FROM keys WHERE id = '" + "x".repeat(60_000) + "'");
            sides.succeed("SELECT v FROM keys WHERE id = 'x' AND c > '" + "x".repeat(10_000) + "'");
            sides.succeed("DELETE FROM keys WHERE id = 'x' AND c > '" + "x".repeat(1000) + "'");
            sides.succeed("SELECT * FROM keys");
            sides.restart();
            sides.succeed("SELECT * FROM keys");
        }
    }

    /** A whole primary key that only the stock memtables take is refused with a message that says why. */
    @Test
    void primaryKeyTooLong(Nodes nodes) throws IOException {
        try (Sides sides = new Sides(nodes, "longest")) {
            sides.succeed("CREATE TABLE keys (id text, c text, v int, PRIMARY KEY (id, c)) WITH MEMTABLE");
            String half = "x".repeat(40_000);
            assertTooLong(sides.alone(1, insert(40_000, 40_000)).error());
            assertTooLong(sides.alone(1, "BEGIN BATCH " + insert(1, 1) + "; " + insert(40_000, 40_000) + "; APPLY BATCH")
                    .error());
            PreparedStatement prepared = sides.session(1).prepare("UPDATE keys SET v = 1 WHERE id = ? AND c = ?");
            assertTooLong(Answer.of(sides.session(1), prepared.bind(half, half)).error());
            assertTooLong(Answer.of(
                            sides.session(1),
                            BatchStatement.newInstance(BatchType.LOGGED, prepared.bind("x", "x"), prepared.bind(half, half)))
                    .error());
            // The bound of a range is met by the memtable, too late for the client; the log says why.
            String error = sides.alone(1, "DELETE FROM keys WHERE id = '" + half + "' AND c > '" + half + "'")
                    .error();
            assertNotNull(error, "a bound of 80,000 bytes was taken");
            assertTrue(error.startsWith("WriteFailureException: "), error);
            String log = Files.readString(nodes.directory(1).resolve("system.log"));
            assertTrue(log.contains("a primary key of 80016 bytes"), "the log does not say why");
            assertEquals(0, sides.alone(1, "SELECT * FROM keys").rows().size());
        }
    }

    private static void assertTooLong(String error) {
        assertNotNull(error, "a primary key of 80,000 bytes was taken");
        assertTrue(error.startsWith("InvalidQueryException: "), error);
        assertTrue(error.contains("a primary key of 80016 bytes as it is stored"), error);
    }

    private static String insert(int keyBytes, int clusteringBytes) {
        return "INSERT INTO keys (id, c, v) VALUES ('" + "x".repeat(keyBytes) + "', '" + "x".repeat(clusteringBytes)
                + "', 1)";
    }
}
