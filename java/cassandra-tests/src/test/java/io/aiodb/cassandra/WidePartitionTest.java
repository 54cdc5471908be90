package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A partition of a million rows that has more bytes than the heap of its node, which is 512 MB. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class WidePartitionTest {
    private static final int ROWS = 1_000_000;
    private static final int BATCH_ROWS = 100;
    private static final String VALUE = "v".repeat(600);
    private static final int PAGE_ROWS = 5000;

    @Test
    void aMillionRows(Nodes nodes) {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE wide WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE wide.rows (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
            fill(session);
            assertEquals(0, only(session, "SELECT c FROM wide.rows WHERE id = 1 LIMIT 1"));
            assertEquals(ROWS - 1, only(session, "SELECT c FROM wide.rows WHERE id = 1 ORDER BY c DESC LIMIT 1"));
            assertEquals(700_000, only(session, "SELECT c FROM wide.rows WHERE id = 1 AND c >= 700000 LIMIT 1"));
            assertAllInOrder(session);
            session.execute("DELETE FROM wide.rows WHERE id = 1 AND c < 999000");
            assertEquals(999_000, only(session, "SELECT c FROM wide.rows WHERE id = 1 LIMIT 1"));
            session.execute("DELETE FROM wide.rows WHERE id = 1");
            assertEquals(0, session.execute("SELECT c FROM wide.rows WHERE id = 1").all().size());
        }
    }

    private static void fill(CqlSession session) {
        PreparedStatement insert = session.prepare("INSERT INTO wide.rows (id, c, v) VALUES (1, ?, ?)");
        for (int from = 0; from < ROWS; from += BATCH_ROWS) {
            BatchStatementBuilder batch = new BatchStatementBuilder(BatchType.UNLOGGED);
            for (int row = from; row < from + BATCH_ROWS; row++) {
                batch.addStatement(insert.bind(row, VALUE));
            }
            session.execute(batch.build());
        }
    }

    private static int only(CqlSession session, String statement) {
        return session.execute(statement).one().getInt("c");
    }

    private static void assertAllInOrder(CqlSession session) {
        int next = 0;
        for (Row row : session.execute(
                SimpleStatement.newInstance("SELECT c, v FROM wide.rows WHERE id = 1").setPageSize(PAGE_ROWS))) {
            assertEquals(next++, row.getInt("c"));
            assertEquals(VALUE, row.getString("v"));
        }
        assertEquals(ROWS, next);
    }
}
