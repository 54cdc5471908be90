package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.TraceEvent;
import java.util.List;
import javax.management.RuntimeMBeanException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A trace of a statement says what the store had to do with it; metrics say what there is. */
@ExtendWith(SharedNode.class)
final class TracingTest {
    private static final int ROWS = 200;
    private static final String BUDGET = "MemoryBudgetBytes";
    private static final long BUDGET_BYTES = 96L << 20;
    private static final int ROW_BYTES = 1000;

    private static final String SPACE =
            "org.apache.cassandra.metrics:type=Table,keyspace=spacious,scope=rows,name=LiveDiskSpaceUsed";

    private static final String METRICS =
            "org.apache.cassandra.metrics:type=AiodbMemtable,keyspace=traced,scope=rows,name=";

    @Test
    void tracesAndMetrics(Nodes nodes) {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE traced WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE traced.rows (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
            String written = trace(session, "INSERT INTO traced.rows (id, c, v) VALUES (1, 1, 'v')");
            assertTrue(written.contains("Wrote 1 entries to the aiodb store"), written);
            String read = trace(session, "SELECT * FROM traced.rows WHERE id = 1");
            assertTrue(read.contains("Reading 1 slices of a partition in the aiodb store"), read);
        }
        try (Management management = nodes.management(1)) {
            assertTrue((Long) management.attribute(METRICS + "StoredEntries", "Value") >= 1);
            assertTrue((Long) management.attribute(METRICS + "StoreDiskBytes", "Value") > 0);
            for (String count : List.of("Runs", "RunBytes", "MergeDebtBytes", "Store.runs_above_bound")) {
                assertTrue((Long) management.attribute(METRICS + count, "Value") >= 0, count);
            }
            for (String seconds : List.of("Store.memory_full_seconds", "Store.disk_full_seconds")) {
                assertTrue((Long) management.attribute(METRICS + seconds, "Value") >= -1, seconds);
            }
            assertEquals("", management.attribute(METRICS + "Store.warnings", "Value"));
        }
    }

    /** In JMX, until the node ends. */
    @Test
    void theBudgetOfAStoreIsChanged(Nodes nodes) {
        try (CqlSession session = nodes.session(1);
                Management management = nodes.management(1)) {
            session.execute("CREATE KEYSPACE budget WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE budget.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
            session.execute("INSERT INTO budget.rows (id, v) VALUES (1, 'v')");
            String store = management.names("io.aiodb.cassandra:type=Store,*").iterator().next().toString();
            Object before = management.attribute(store, BUDGET);
            management.set(store, BUDGET, BUDGET_BYTES);
            assertEquals(BUDGET_BYTES, management.attribute(store, BUDGET));
            assertThrows(RuntimeMBeanException.class, () -> management.set(store, BUDGET, 1L));
            management.set(store, BUDGET, before);
            assertEquals(before, management.attribute(store, BUDGET));
            assertEquals("v", session.execute("SELECT v FROM budget.rows WHERE id = 1").one().getString("v"));
        }
    }

    /** A transaction that is noted as committed is in the store, and at {@code durability: sync} on its disk. */
    @Test
    void aLightweightTransactionIsInTheStoreBeforeItIsNoted(Nodes nodes) {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE light WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE light.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
            String events = trace(session, "INSERT INTO light.rows (id, v) VALUES (1, 'v') IF NOT EXISTS");
            int written = events.indexOf("Wrote 1 entries to the aiodb store");
            assertTrue(written > 0, events);
            assertTrue(events.lastIndexOf("Adding to paxos memtable") > written, events);
        }
    }

    /** As Cassandra says it of SSTables, in {@code nodetool tablestats} too. */
    @Test
    void spaceOnDisk(Nodes nodes) {
        try (CqlSession session = nodes.session(1);
                Management management = nodes.management(1)) {
            session.execute("CREATE KEYSPACE spacious WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE spacious.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
            for (int row = 0; row < ROWS; row++) {
                session.execute("INSERT INTO spacious.rows (id, v) VALUES (" + row + ", '" + "x".repeat(ROW_BYTES) + "')");
            }
            management.compact("spacious");
            long used = management.count(SPACE);
            assertTrue(used >= ROWS * ROW_BYTES && used < 2 * ROWS * ROW_BYTES, used + " bytes");
            String said = nodes.nodetool(1, "tablestats", "spacious.rows");
            assertTrue(said.contains("Space used (live): " + used), said);
            session.execute("TRUNCATE spacious.rows");
            assertEquals(0, management.count(SPACE));
        }
    }

    private static String trace(CqlSession session, String statement) {
        List<String> events = session.execute(
                        SimpleStatement.newInstance(statement).setTracing(true))
                .getExecutionInfo()
                .getQueryTrace()
                .getEvents()
                .stream()
                .map(TraceEvent::getActivity)
                .toList();
        return String.join("\n", events);
    }
}
