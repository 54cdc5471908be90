package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Mutations just under max_mutation_size are written, and those just over it refused, whatever the memtable; and rows that many
 * of them made are moved from memtable to memtable.
 */
@Tag("long")
final class MutationSizeTest {
    private static final int NETWORK = 99;
    private static final String SETTINGS = """
            max_mutation_size: 1MiB
            # By default no message is larger than a mutation may be, so that none too large would arrive.
            native_transport_max_message_size: 4MiB
            """;

    private static final int MOST_BYTES = 1 << 20;

    /** What a mutation takes beside its values, at most; those below are that much smaller or larger. */
    private static final int OTHER_BYTES = 200;

    /** Rows of one partition: four times what a mutation may be. */
    private static final int ROWS = 64;

    private static final int ROW_BYTES = 64 << 10;

    /** The values by which one row grows, with an update each: to more than a mutation may be. */
    private static final int PARTS = 4;

    private static final int PART_BYTES = 400 << 10;

    @Test
    void underAndOver() {
        try (Nodes nodes = new Nodes(NETWORK, 1, SETTINGS);
                Sides sides = new Sides(nodes, "mutations")) {
            sides.succeed("CREATE TABLE rows (id int, c int, v blob, PRIMARY KEY (id, c)) WITH MEMTABLE");
            sides.succeed(insert(1, MOST_BYTES - OTHER_BYTES));
            assertNotNull(sides.execute(insert(2, MOST_BYTES)).error(), "a row of 1 MiB was taken");
            sides.succeed(batch(3, MOST_BYTES / 4 - OTHER_BYTES));
            assertNotNull(sides.execute(batch(4, MOST_BYTES / 4)).error(), "a batch of 1 MiB was taken");
            sides.succeed("SELECT * FROM rows");
            sides.restart();
            sides.succeed("SELECT * FROM rows");
        }
    }

    /** Nobody could write them as one mutation, neither the rows together nor the largest of them alone. */
    @Test
    void rowsThatAreMoreThanAMutationMoveToAnotherMemtableAndBack() {
        try (Nodes nodes = new Nodes(NETWORK, 1, SETTINGS)) {
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE wide WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE wide.rows (id int, c int, v blob, m map<int, blob>, PRIMARY KEY (id, c))"
                        + " WITH memtable = 'aiodb'");
                fill(session);
            }
            for (String mapping : List.of("trie", "aiodb")) {
                nodes.kill(1);
                nodes.map(1, mapping);
                nodes.start(1);
                check(nodes, "the node was mapped to " + mapping);
            }
            try (Management management = nodes.management(1)) {
                management.compact("wide");
            }
            check(nodes, "the SSTables were moved into the store");
        }
    }

    private static void fill(CqlSession session) {
        var insert = session.prepare("INSERT INTO wide.rows (id, c, v) VALUES (1, ?, ?)");
        for (int row = 0; row < ROWS; row++) {
            session.execute(insert.bind(row, bytes(row, ROW_BYTES)));
        }
        var grow = session.prepare("UPDATE wide.rows SET m = m + ? WHERE id = 1 AND c = " + ROWS);
        for (int part = 0; part < PARTS; part++) {
            session.execute(grow.bind(Map.of(part, bytes(part, PART_BYTES))));
        }
    }

    private static ByteBuffer bytes(int number, int length) {
        byte[] bytes = new byte[length];
        Arrays.fill(bytes, (byte) number);
        return ByteBuffer.wrap(bytes);
    }

    private static void check(Nodes nodes, String when) {
        try (CqlSession session = nodes.session(1)) {
            int row = 0;
            for (Row found : session.execute("SELECT c, v, m FROM wide.rows WHERE id = 1 ORDER BY c")) {
                assertEquals(row, found.getInt("c"), when);
                if (row < ROWS) {
                    assertEquals(bytes(row, ROW_BYTES), found.getByteBuffer("v"), when);
                } else {
                    Map<Integer, ByteBuffer> parts = found.getMap("m", Integer.class, ByteBuffer.class);
                    assertEquals(PARTS, parts.size(), when);
                    parts.forEach((part, value) -> assertEquals(bytes(part, PART_BYTES), value, when));
                }
                row++;
            }
            assertEquals(ROWS + 1, row, when);
        }
    }

    private static String insert(int id, int bytes) {
        return insert(id, 1, bytes);
    }

    private static String insert(int id, int c, int bytes) {
        return "INSERT INTO rows (id, c, v) VALUES (" + id + ", " + c + ", 0x" + "5a".repeat(bytes) + ")";
    }

    /** Four rows of one partition, which are one mutation. */
    private static String batch(int id, int bytes) {
        StringBuilder batch = new StringBuilder("BEGIN UNLOGGED BATCH ");
        for (int c = 0; c < 4; c++) {
            batch.append(insert(id, c, bytes)).append("; ");
        }
        return batch.append("APPLY BATCH").toString();
    }
}
