package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Mutations just under max_mutation_size are written, and those just over it refused, whatever the memtable. */
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
