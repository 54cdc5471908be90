package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Properties that a table in a store does not support are refused at the statement, and the table goes on. */
@ExtendWith(SharedNode.class)
final class RefusalsTest {
    private record Refused(String statement, String part) {}

    private static final List<Refused> REFUSED = List.of(
            new Refused("CREATE INDEX ON refused (v)", "does not support indexes"),
            new Refused("CREATE INDEX ON refused (v) USING 'sai'", "does not support indexes"),
            new Refused(
                    "CREATE CUSTOM INDEX ON refused (v) USING 'StorageAttachedIndex'", "does not support indexes"),
            new Refused(
                    "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM refused WHERE id IS NOT NULL AND v IS NOT NULL "
                            + "PRIMARY KEY (v, id)",
                    "does not support materialized views"),
            new Refused("ALTER TABLE refused WITH cdc = true", "does not support change data capture"),
            new Refused(
                    "CREATE TABLE with_cdc (id int PRIMARY KEY) WITH cdc = true AND memtable = 'aiodb'",
                    // Cassandra's own words: it looks at this in new tables only.
                    "CDC cannot work if writes skip the commit log"),
            new Refused("ALTER TABLE indexed WITH memtable = 'aiodb'", "does not support indexes"));

    @Test
    void refused(Nodes nodes) {
        try (Sides sides = new Sides(nodes, "refusals")) {
            alone(sides, "CREATE TABLE refused (id int PRIMARY KEY, v int) WITH memtable = 'aiodb'");
            alone(sides, "CREATE TABLE indexed (id int PRIMARY KEY, v int)");
            alone(sides, "CREATE INDEX ON indexed (v)");
            for (Refused refused : REFUSED) {
                String error = sides.alone(1, refused.statement()).error();
                assertNotNull(error, () -> "it was taken: " + refused.statement());
                assertTrue(error.startsWith("Invalid"), error);
                assertTrue(error.contains(refused.part()), error);
            }
            alone(sides, "INSERT INTO refused (id, v) VALUES (1, 1)");
            alone(sides, "INSERT INTO indexed (id, v) VALUES (1, 1)");
            assertEquals(1, sides.alone(1, "SELECT * FROM refused").rows().size());
            assertEquals(1, sides.alone(1, "SELECT * FROM indexed WHERE v = 1").rows().size());
        }
    }

    private static void alone(Sides sides, String statement) {
        assertEquals(null, sides.alone(1, statement).error(), statement);
    }
}
