package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** A batch of rows of one partition becomes visible at once: readers never see a part of it. */
@ExtendWith(SharedNode.class)
final class IsolationTest {
    private static final int ROWS = 30;
    private static final int READS = Integer.getInteger("aiodb.reads", 150);

    /** Each must find the rows of one version only, and all rows that it asks for. */
    private record Shape(String query, int rows) {}

    private static final List<Shape> SHAPES = List.of(
            new Shape("SELECT c, v, st FROM isolated WHERE id = 1", ROWS),
            new Shape("SELECT c, v, st FROM isolated WHERE id = 1 ORDER BY c DESC", ROWS),
            new Shape("SELECT c, v, st FROM isolated WHERE id = 1 LIMIT 7", 7),
            new Shape("SELECT c, v, st FROM isolated", ROWS));

    /** The rows of every version, whichever row they begin with. */
    private static final List<Shape> SAME_ROWS = List.of(
            new Shape("SELECT c, v, st FROM updated WHERE id = 1 AND c IN (0, 9, 29)", 3),
            new Shape("SELECT c, v, st FROM updated WHERE id = 1 AND c >= 5 AND c < 15", 10),
            new Shape("SELECT c, v, st FROM updated WHERE id = 1 AND c = 29", 1),
            new Shape("SELECT c, v, st FROM updated WHERE id IN (1, 2)", ROWS));

    /** Each batch deletes the rows of the one before, with one range, and writes others. */
    @Test
    void replacedRows(Nodes nodes) throws InterruptedException, ExecutionException {
        run(nodes, "isolated", SHAPES, true);
    }

    /** Each batch writes the same rows. */
    @Test
    void updatedRows(Nodes nodes) throws InterruptedException, ExecutionException {
        run(nodes, "updated", SAME_ROWS, false);
    }

    private static void run(Nodes nodes, String table, List<Shape> shapes, boolean replace)
            throws InterruptedException, ExecutionException {
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE IF NOT EXISTS isolation WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("USE isolation");
            session.execute("CREATE TABLE " + table + " (id int, c int, v int, st int static, PRIMARY KEY (id, c)) "
                    + "WITH memtable = '" + Sides.MEMTABLES.get(1) + "'");
            Writer writer = new Writer(session, table, replace);
            writer.write(0);
            AtomicBoolean done = new AtomicBoolean();
            ExecutorService threads = Executors.newCachedThreadPool();
            try {
                Future<Integer> written = threads.submit(() -> {
                    int version = 1;
                    for (; !done.get(); version++) {
                        writer.write(version);
                    }
                    return version;
                });
                List<Future<Integer>> readers = new ArrayList<>();
                for (Shape shape : shapes) {
                    readers.add(threads.submit(() -> read(session, shape)));
                }
                int seen = 0;
                for (Future<Integer> reader : readers) {
                    seen += reader.get();
                }
                done.set(true);
                System.out.println(
                        "IsolationTest: " + written.get() + " batches, " + seen + " times another version was read");
            } finally {
                done.set(true);
                threads.shutdown();
            }
        }
    }

    /** Returns how many times the version was another one than the time before. */
    private static int read(CqlSession session, Shape shape) {
        int seen = 0;
        int last = 0;
        // A node that is slow must show some versions, too.
        for (int count = 0; count < READS || seen < 3; count++) {
            List<Row> rows = session.execute(shape.query()).all();
            assertEquals(shape.rows(), rows.size(), () -> "rows of " + shape.query());
            int version = rows.get(0).getInt("v");
            for (Row row : rows) {
                assertEquals(version, row.getInt("v"), () -> "another version within " + shape.query());
                assertEquals(version, row.getInt("st"), () -> "a static column of another version: " + shape.query());
            }
            if (version != last) {
                seen++;
                last = version;
            }
        }
        return seen;
    }

    private static final class Writer {
        private final CqlSession session;
        private final boolean replace;
        private final PreparedStatement insert;
        private final PreparedStatement update;
        private final PreparedStatement delete;

        Writer(CqlSession session, String table, boolean replace) {
            this.session = session;
            this.replace = replace;
            insert = session.prepare("INSERT INTO " + table + " (id, c, v) VALUES (1, ?, ?) USING TIMESTAMP ?");
            update = session.prepare("UPDATE " + table + " USING TIMESTAMP ? SET st = ? WHERE id = 1");
            delete = session.prepare("DELETE FROM " + table + " USING TIMESTAMP ? WHERE id = 1 AND c >= 0");
        }

        void write(int version) {
            long timestamp = 2L * version + 1;
            int first = replace ? version % 2 * ROWS : 0;
            BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.UNLOGGED);
            if (replace) {
                batch.addStatement(delete.bind(timestamp - 1));
            }
            batch.addStatement(update.bind(timestamp, version));
            for (int row = 0; row < ROWS; row++) {
                batch.addStatement(insert.bind(first + row, version, timestamp));
            }
            session.execute(batch.build());
        }
    }
}
