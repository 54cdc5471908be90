package io.aiodb.cassandra.bench;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What is asked of a line, and of which of its tables. */
enum Workload {
    /** One row by its key, from those that were loaded, all alike. */
    GET(Shape.ROWS, "SELECT v FROM %s WHERE id = ?"),
    /** One of the rows that were loaded is written again. */
    OVERWRITE(Shape.ROWS, "INSERT INTO %s (id, v) VALUES (?, ?)"),
    /** Rows that were not there. */
    INSERT(Shape.ROWS, "INSERT INTO %s (id, v) VALUES (?, ?)"),
    /** One of ten columns is written again. */
    COLUMN(Shape.COLUMNS, "UPDATE %s SET c0 = ? WHERE id = ?"),
    /** Twenty rows of a partition of a hundred, from a random one on. */
    RANGE(Shape.PARTITIONS, "SELECT v FROM %s WHERE id = ? AND c >= ? LIMIT " + Workload.RANGE_ROWS),
    /** A thousand rows in the order of the ring, from a random token on: a piece of a scan of the table. */
    SCAN(Shape.ROWS, "SELECT v FROM %s WHERE token(id) >= ? LIMIT " + Workload.SCAN_ROWS),
    /** Half gets, half overwrites, most of them of few rows. */
    MIX(Shape.ROWS, GET.statement);

    /** How many rows a range has. */
    static final int RANGE_ROWS = 20;

    private static final int SCAN_ROWS = 1000;

    private static final int COLUMNS = 10;
    private static final int PARTITION_ROWS = 100;

    /** The tables that a line has. */
    private enum Shape {
        ROWS("id bigint PRIMARY KEY, v blob", "id, v"),
        COLUMNS("id bigint PRIMARY KEY, " + numbered("c%d blob"), "id, " + numbered("c%d")),
        PARTITIONS("id bigint, c int, v blob, PRIMARY KEY (id, c)", "id, c, v");

        private final String columns;
        private final String names;

        Shape(String columns, String names) {
            this.columns = columns;
            this.names = names;
        }

        private static String numbered(String column) {
            return IntStream.range(0, Workload.COLUMNS)
                    .mapToObj(number -> String.format(Locale.ROOT, column, number))
                    .collect(Collectors.joining(", "));
        }

        private int valueCount() {
            return names.split(",").length;
        }

        private String table(String keyspace, Line line) {
            return keyspace + "." + name().toLowerCase(Locale.ROOT) + "_" + line.title();
        }
    }

    private final Shape shape;
    private final String statement;

    Workload(Shape shape, String statement) {
        this.shape = shape;
        this.statement = statement;
    }

    String title() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Its table, which others may have as well. */
    String table(String keyspace, Line line) {
        return shape.table(keyspace, line);
    }

    static List<Workload> parse(String names) {
        return Arrays.stream(names.split(","))
                .map(name -> valueOf(name.strip().toUpperCase(Locale.ROOT)))
                .toList();
    }

    void makeTable(CqlSession session, String keyspace, Line line) {
        session.execute("CREATE TABLE " + table(keyspace, line) + " (" + shape.columns + ")" + line.with());
    }

    /** The requests that load its table; the number of each is that of a row. */
    LongFunction<BoundStatement> loading(CqlSession session, String keyspace, Line line, int valueBytes) {
        String places = String.join(", ", Collections.nCopies(shape.valueCount(), "?"));
        PreparedStatement insert = session.prepare(
                "INSERT INTO " + table(keyspace, line) + " (" + shape.names + ") VALUES (" + places + ")");
        return switch (shape) {
            case ROWS -> number -> insert.bind(number, value(valueBytes));
            case COLUMNS -> number -> insert.bind(columns(number, valueBytes));
            case PARTITIONS -> number -> insert.bind(
                    number / PARTITION_ROWS, (int) (number % PARTITION_ROWS), value(valueBytes));
        };
    }

    private static Object[] columns(long id, int valueBytes) {
        Object[] values = new Object[1 + COLUMNS];
        values[0] = id;
        for (int column = 1; column <= COLUMNS; column++) {
            values[column] = value(valueBytes / COLUMNS);
        }
        return values;
    }

    /**
     * What is asked.
     *
     * @param rows how many were loaded
     * @param end rows from here on are not there
     */
    LongFunction<BoundStatement> requests(
            CqlSession session, String keyspace, Line line, long rows, long end, int valueBytes) {
        PreparedStatement prepared = prepare(session, keyspace, line);
        return switch (this) {
            case GET -> number -> prepared.bind(random(rows));
            case OVERWRITE -> number -> prepared.bind(random(rows), value(valueBytes));
            case INSERT -> number -> prepared.bind(end + number, value(valueBytes));
            case COLUMN -> number -> prepared.bind(value(valueBytes / COLUMNS), random(rows));
            case RANGE -> number -> prepared.bind(
                    random(rows / PARTITION_ROWS), (int) random(PARTITION_ROWS - RANGE_ROWS));
            // In the first half of the ring, so that there is always as much behind it.
            case SCAN -> number -> prepared.bind(-random(Long.MAX_VALUE));
            case MIX -> {
                PreparedStatement overwrite = OVERWRITE.prepare(session, keyspace, line);
                ZipfKeys keys = new ZipfKeys(rows);
                yield number -> ThreadLocalRandom.current().nextBoolean()
                        ? prepared.bind(keys.next())
                        : overwrite.bind(keys.next(), value(valueBytes));
            }
        };
    }

    private PreparedStatement prepare(CqlSession session, String keyspace, Line line) {
        return session.prepare(String.format(Locale.ROOT, statement, table(keyspace, line)));
    }

    private static long random(long bound) {
        return ThreadLocalRandom.current().nextLong(Math.max(1, bound));
    }

    /** A value that no compression makes shorter. */
    private static ByteBuffer value(int bytes) {
        byte[] value = new byte[bytes];
        new SplittableRandom(ThreadLocalRandom.current().nextLong()).nextBytes(value);
        return ByteBuffer.wrap(value);
    }
}
