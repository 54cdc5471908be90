package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Commands and estimates that Cassandra makes of SSTables only go by what is in stores, too. */
@Tag("long")
final class NodetoolTest {
    private static final int NETWORK = 98;
    private static final int ROWS = 3000;
    private static final Map<String, String> OPTIONS =
            Map.of("JVM_OPTIONS", "-XX:TieredStopAtLevel=1 -Dcassandra.size_recorder_interval=3");

    private static final int LOOKS = 600;
    private static final int LOOK_MS = 1000;

    @Test
    void cleanupAndSizeEstimates() throws InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, 1, "", OPTIONS)) {
            fill(nodes);
            try (CqlSession session = nodes.session(1, "cleaned")) {
                for (String table : Sides.MEMTABLES) {
                    assertEstimated(session, table);
                }
                nodes.nodetool(1, "cleanup", "cleaned");
                assertCounts(session, ROWS);
                replicate(session, 0);
                nodes.nodetool(1, "cleanup", "cleaned");
                replicate(session, 1);
                assertCounts(session, 0);
            }
            nodes.restart(1);
            try (CqlSession session = nodes.session(1, "cleaned")) {
                // Cassandra replays its commit log, and has rows again that it has just cleaned away.
                String table = Sides.MEMTABLES.get(1);
                assertCount(session, table, 0);
                session.execute("INSERT INTO " + table + " (id, v) VALUES (1, 'again')");
                assertCount(session, table, 1);
            }
        }
    }

    /** The row was written after it had been deleted, and only then was anything logged. */
    @Test
    void whatACleanupTakesIsNotReplayedWithoutWhatHidIt() {
        try (Nodes nodes = new Nodes(NETWORK, 1)) {
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE cleaned WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                for (String table : List.of("deleted", "leaving")) {
                    session.execute("CREATE TABLE cleaned." + table + " (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
                    session.execute("INSERT INTO cleaned." + table + " (id, v) VALUES (2, 'first') USING TIMESTAMP 1");
                }
                session.execute("DELETE FROM cleaned.deleted USING TIMESTAMP 10 WHERE id = 1");
                // For two minutes from here on Cassandra's commit log has what is written to stores, too.
                session.execute("ALTER TABLE cleaned.leaving WITH memtable = 'trie'");
                session.execute("INSERT INTO cleaned.deleted (id, v) VALUES (1, 'late') USING TIMESTAMP 5");
                replicate(session, 0);
                nodes.nodetool(1, "cleanup", "cleaned", "deleted");
                replicate(session, 1);
                assertCount(session, "cleaned.deleted", 0);
            }
            nodes.restart(1);
            try (CqlSession session = nodes.session(1)) {
                assertCount(session, "cleaned.deleted", 0);
                assertCount(session, "cleaned.leaving", 1);
            }
        }
    }

    private static void fill(Nodes nodes) {
        try (CqlSession session = nodes.session(1);
                Management management = nodes.management(1)) {
            session.execute("CREATE KEYSPACE cleaned WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            for (String memtable : Sides.MEMTABLES) {
                session.execute("CREATE TABLE cleaned." + memtable + " (id int PRIMARY KEY, v text) WITH memtable = '"
                        + memtable + "'");
                PreparedStatement insert = session.prepare("INSERT INTO cleaned." + memtable + " (id, v) VALUES (?, 'value')");
                for (int row = 0; row < ROWS; row++) {
                    session.execute(insert.bind(row));
                }
            }
            management.flush("cleaned");
        }
    }

    /** So many replicas that the node owns everything or nothing. */
    private static void replicate(CqlSession session, int replicas) {
        session.execute("ALTER KEYSPACE cleaned WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
                + replicas + "}");
    }

    private static void assertCounts(CqlSession session, int rows) {
        for (String table : Sides.MEMTABLES) {
            assertCount(session, table, rows);
        }
    }

    private static void assertCount(CqlSession session, String table, int rows) {
        assertEquals(rows, session.execute("SELECT id FROM " + table).all().size(), table);
    }

    /** Cassandra writes them every now and then. An estimate that is wrong by half is still one. */
    private static void assertEstimated(CqlSession session, String table) throws InterruptedException {
        long found = 0;
        for (int look = 0; look < LOOKS && found == 0; look++) {
            for (Row row : session.execute("SELECT partitions_count, mean_partition_size FROM system.size_estimates "
                    + "WHERE keyspace_name = 'cleaned' AND table_name = '" + table + "'")) {
                found += row.getLong(0);
                assertTrue(row.getLong(0) == 0 || row.getLong(1) > 0, table + " has partitions of no size");
            }
            Thread.sleep(LOOK_MS);
        }
        assertTrue(found > ROWS / 2 && found < ROWS * 2, table + " is estimated to have " + found + " partitions");
    }
}
