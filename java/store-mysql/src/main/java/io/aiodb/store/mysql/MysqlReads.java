package io.aiodb.store.mysql;

import io.aiodb.store.Bytes;
import io.aiodb.store.Range;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/** The statements that read. */
final class MysqlReads {
    /** More rows than this are estimated. */
    private static final int COUNTED_ROWS = 10_000;

    /** A longer value does not come with its page. */
    private static final int PAGE_VALUE_BYTES = 64 << 10;

    private MysqlReads() {}

    /** A row of a page; the value is null where it is to be fetched by itself. */
    record Row(byte[] key, byte[] value) {}

    /** Some rows, and whether the range goes on behind them. */
    record Page(List<Row> rows, boolean goesOn) {
        /** Whether nothing more has to be asked. */
        boolean isWhole() {
            return !goesOn && rows.stream().allMatch(row -> row.value() != null);
        }
    }

    /** The value of a key, or null. */
    static byte[] get(Connection connection, String table, byte[] key) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT v FROM " + table + " WHERE k = ?")) {
            statement.setBytes(1, key);
            try (ResultSet found = statement.executeQuery()) {
                return found.next() ? found.getBytes(1) : null;
            }
        }
    }

    /** The same without a plan: the statement names the index. */
    static byte[] getByHandler(Connection connection, String table, byte[] key) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute("HANDLER " + table + " OPEN AS opened");
            try (ResultSet found = statement.executeQuery(
                    "HANDLER opened READ `PRIMARY` = (x'" + HexFormat.of().formatHex(key) + "')")) {
                return found.next() ? found.getBytes("v") : null;
            } finally {
                // An open one would keep the table from being dropped.
                statement.execute("HANDLER opened CLOSE");
            }
        }
    }

    /** The same by the table's procedure, see {@link MysqlSchema#makeProcedure}. */
    static byte[] getByProcedure(Connection connection, String procedure, byte[] key) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("CALL " + procedure + "(?)")) {
            statement.setBytes(1, key);
            try (ResultSet found = statement.executeQuery()) {
                return found.next() ? found.getBytes(1) : null;
            }
        }
    }

    /**
     * Reads the next rows of a range.
     *
     * @param last the key behind which they lie; null for the first ones
     */
    static Page page(Connection connection, String table, Range range, byte[] last, int rows) throws SQLException {
        StringBuilder text = new StringBuilder("SELECT k");
        if (!range.isKeysOnly()) {
            text.append(", IF(LENGTH(v) <= " + PAGE_VALUE_BYTES + ", v, NULL)");
        }
        text.append(" FROM ").append(table);
        List<byte[]> bounds = new ArrayList<>();
        bound(text, bounds, range.lower().orElse(null), range.isLowerExcluded() ? ">" : ">=");
        bound(text, bounds, range.upper().orElse(null), range.isUpperIncluded() ? "<=" : "<");
        bound(text, bounds, last == null ? null : ByteBuffer.wrap(last), range.isBackward() ? "<" : ">");
        text.append(" ORDER BY k").append(range.isBackward() ? " DESC" : "").append(" LIMIT ?");
        List<Row> found = new ArrayList<>();
        try (PreparedStatement statement = connection.prepareStatement(text.toString())) {
            for (int at = 0; at < bounds.size(); at++) {
                statement.setBytes(at + 1, bounds.get(at));
            }
            statement.setInt(bounds.size() + 1, rows + 1);
            try (ResultSet answer = statement.executeQuery()) {
                boolean more = answer.next();
                while (more && found.size() < rows) {
                    found.add(new Row(answer.getBytes(1), range.isKeysOnly() ? new byte[0] : answer.getBytes(2)));
                    more = answer.next();
                }
                return new Page(found, more);
            }
        }
    }

    private static void bound(StringBuilder text, List<byte[]> bounds, ByteBuffer key, String comparison) {
        if (key != null) {
            text.append(bounds.isEmpty() ? " WHERE k " : " AND k ").append(comparison).append(" ?");
            bounds.add(Bytes.of(key));
        }
    }

    /** How many rows there are: exactly up to some thousands, beyond that as the server estimates. */
    static long count(Connection connection, MysqlSettings settings, String rows) throws SQLException {
        long counted = number(connection, "SELECT COUNT(*) FROM (SELECT 1 FROM " + settings.table(rows) + " LIMIT "
                + COUNTED_ROWS + ") some");
        if (counted < COUNTED_ROWS) {
            return counted;
        }
        return Math.max(counted, number(connection, "SELECT table_rows FROM information_schema.tables WHERE table_schema = '"
                + settings.database() + "' AND table_name = '" + rows + "'"));
    }

    /** What all tables of the store occupy. */
    static long diskBytes(Connection connection, MysqlSettings settings) throws SQLException {
        return number(connection, "SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables"
                + " WHERE table_schema = '" + settings.database() + "'");
    }

    /** One number; 0 where there is none. */
    static long number(Connection connection, String query) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(query);
                ResultSet found = statement.executeQuery()) {
            return found.next() ? found.getLong(1) : 0;
        }
    }
}
