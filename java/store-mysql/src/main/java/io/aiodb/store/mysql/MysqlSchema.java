package io.aiodb.store.mysql;

import io.aiodb.store.ServerDirectory;
import io.aiodb.store.StoreException;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a store has on its server: a database with the tables {@code store}, of one row that says whose it is and how often it
 * was opened, {@code tables}, which has the generation of each table, and {@code rows_G} with the rows of generation G. Keys
 * are {@code VARBINARY}, which nothing folds, orders otherwise or pads.
 */
final class MysqlSchema {
    static final String STORE = "store";
    static final String TABLES = "tables";
    private static final String ROWS = "rows_";

    /** What is in the database and how: the tables above. */
    private static final int FORMAT = 1;

    private final MysqlSettings settings;
    private final ServerDirectory own;

    MysqlSchema(MysqlSettings settings, ServerDirectory own) {
        this.settings = settings;
        this.own = own;
    }

    /** The name of the table that has the rows of a generation. */
    static String rowsName(long generation) {
        return ROWS + generation;
    }

    /** Makes what is missing of a new store, or takes one that is there. Answers with how often it was opened. */
    long open(Connection connection) throws SQLException {
        Set<String> found = tableNames(connection);
        if (!found.contains(STORE)) {
            if (own.isMade()) {
                throw lost();
            }
            if (!found.isEmpty()) {
                throw foreign("the tables " + found);
            }
            run(connection, "CREATE DATABASE IF NOT EXISTS `" + settings.database() + "`");
            run(connection, "CREATE TABLE " + settings.table(STORE) + " (one TINYINT PRIMARY KEY, format INT NOT NULL,"
                    + " id CHAR(36) CHARACTER SET ascii NOT NULL, epoch BIGINT NOT NULL, generation BIGINT NOT NULL) ENGINE=InnoDB");
        }
        List<Object> row = storeRow(connection);
        if (row == null) {
            if (own.isMade()) {
                throw lost();
            }
            run(connection, "CREATE TABLE IF NOT EXISTS " + settings.table(TABLES)
                    + " (name VARBINARY(255) PRIMARY KEY, generation BIGINT NOT NULL) ENGINE=InnoDB");
            run(connection, "INSERT INTO " + settings.table(STORE) + " VALUES (1, " + FORMAT + ", '" + own.id() + "', 0, 0)");
            row = storeRow(connection);
        }
        if (!row.get(1).equals(own.id().toString())) {
            throw new StoreException.Configuration(where() + "the store " + row.get(1) + ", and " + own.path()
                    + " is of the store " + own.id() + ": name another `database`, or the directory of that store");
        }
        checkFormat((Integer) row.get(0));
        checkColumns(connection);
        run(connection, "UPDATE " + settings.table(STORE) + " SET epoch = epoch + 1");
        own.setMade();
        return (Long) storeRow(connection).get(2);
    }

    /** Format, identity and epoch; null if there is no row yet. */
    private List<Object> storeRow(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("SELECT format, id, epoch FROM " + settings.table(STORE))) {
            return found.next() ? List.of(found.getInt(1), found.getString(2), found.getLong(3)) : null;
        } catch (SQLException failure) {
            if (MysqlErrors.isLost(failure)) {
                throw failure;
            }
            throw foreign("a table `store` of another form (" + failure.getMessage() + ")");
        }
    }

    private void checkFormat(int format) {
        String said = where() + "a store of format " + format + ", and this version knows format " + FORMAT;
        if (format > FORMAT) {
            throw new StoreException.NewerVersion(said + ": use a newer version");
        }
        if (format < FORMAT) {
            throw new StoreException.Configuration(said + ": use the version that made it");
        }
    }

    /** A character set would fold or refuse keys, and another engine would not keep rows after a crash. */
    private void checkColumns(Connection connection) throws SQLException {
        String select = "SELECT c.table_name, c.column_name, c.column_type, t.engine FROM information_schema.columns c"
                + " JOIN information_schema.tables t ON c.table_schema = t.table_schema AND c.table_name = t.table_name"
                + " WHERE c.table_schema = ?";
        Map<String, String> wanted = Map.of("k", rowKeyType(), "v", "longblob");
        try (PreparedStatement statement = connection.prepareStatement(select)) {
            statement.setString(1, settings.database());
            try (ResultSet found = statement.executeQuery()) {
                while (found.next()) {
                    String table = found.getString(1);
                    String type = found.getString(3);
                    if (!"InnoDB".equalsIgnoreCase(found.getString(4))) {
                        throw foreign("the table `" + table + "` in the engine " + found.getString(4) + " instead of InnoDB");
                    }
                    if (table.startsWith(ROWS) && !type.equalsIgnoreCase(wanted.get(found.getString(2)))) {
                        throw foreign("the column `" + found.getString(2) + "` of the table `" + table + "` of type " + type
                                + ", which does not keep all bytes apart: it has to be " + wanted.get(found.getString(2)));
                    }
                }
            }
        }
    }

    private static String rowKeyType() {
        return "varbinary(" + MysqlStore.MAX_KEY_BYTES + ")";
    }

    private StoreException lost() {
        return new StoreException.Unavailable(where() + "nothing, but it had the store of " + own.path()
                + ": bring the server's data back, or start with a new directory if they are gone for good");
    }

    private StoreException foreign(String what) {
        return new StoreException.Configuration(where() + what + ": this is no store of this kind; name another `database`");
    }

    private String where() {
        return settings.server() + " has, in the database " + settings.database() + ", ";
    }

    private Set<String> tableNames(Connection connection) throws SQLException {
        Set<String> names = new HashSet<>();
        try (PreparedStatement statement = connection.prepareStatement(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = ?")) {
            statement.setString(1, settings.database());
            try (ResultSet found = statement.executeQuery()) {
                while (found.next()) {
                    names.add(found.getString(1));
                }
            }
        }
        return names;
    }

    /** The generations of all tables, by their names. */
    Map<String, Long> generations(Connection connection) throws SQLException {
        Map<String, Long> generations = new TreeMap<>();
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("SELECT name, generation FROM " + settings.table(TABLES))) {
            while (found.next()) {
                generations.put(new String(found.getBytes(1), StandardCharsets.UTF_8), found.getLong(2));
            }
        }
        return generations;
    }

    /** Makes the place for the rows of a new generation, which nothing names yet. */
    long makeRows(Connection connection, long epoch) throws SQLException {
        try (PreparedStatement next = connection.prepareStatement("UPDATE " + settings.table(STORE)
                + " SET generation = LAST_INSERT_ID(generation + 1) WHERE epoch = ?")) {
            next.setLong(1, epoch);
            if (next.executeUpdate() == 0) {
                throw MysqlSource.takenOver(settings);
            }
        }
        long generation;
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("SELECT LAST_INSERT_ID()")) {
            found.next();
            generation = found.getLong(1);
        }
        run(connection, "CREATE TABLE " + settings.table(rowsName(generation)) + " (k " + rowKeyType()
                + " NOT NULL PRIMARY KEY, v LONGBLOB NOT NULL) ENGINE=InnoDB ROW_FORMAT=DYNAMIC");
        return generation;
    }

    /** Gives a table its generation; one statement, so all or nothing. */
    void name(Connection connection, String table, long generation) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(
                "REPLACE INTO " + settings.table(TABLES) + " (name, generation) VALUES (?, ?)")) {
            statement.setBytes(1, table.getBytes(StandardCharsets.UTF_8));
            statement.setLong(2, generation);
            statement.executeUpdate();
        }
    }

    /** Takes a table's name away. */
    void forget(Connection connection, String table) throws SQLException {
        try (PreparedStatement statement =
                connection.prepareStatement("DELETE FROM " + settings.table(TABLES) + " WHERE name = ?")) {
            statement.setBytes(1, table.getBytes(StandardCharsets.UTF_8));
            statement.executeUpdate();
        }
    }

    /** The generations whose rows are there although no table has them. */
    List<Long> nameless(Connection connection) throws SQLException {
        List<Long> nameless = new ArrayList<>();
        Set<Long> named = new HashSet<>(generations(connection).values());
        for (String name : tableNames(connection)) {
            if (name.matches(ROWS + "[0-9]+") && !named.contains(Long.parseLong(name.substring(ROWS.length())))) {
                nameless.add(Long.parseLong(name.substring(ROWS.length())));
            }
        }
        return nameless;
    }

    /** Makes the procedure that reads a row of a table, where there is none yet. */
    void makeProcedure(Connection connection, String rows) throws SQLException {
        run(connection, "CREATE PROCEDURE IF NOT EXISTS " + settings.table(procedureName(rows)) + " (wanted " + rowKeyType()
                + ") READS SQL DATA SELECT v FROM " + settings.table(rows) + " WHERE k = wanted");
    }

    /** The name of the procedure that reads a row of a table. */
    static String procedureName(String rows) {
        return "get_" + rows;
    }

    /** Deletes the rows of a generation. */
    void drop(Connection connection, long generation) throws SQLException {
        if (settings.access() == MysqlSettings.Access.PROCEDURE) {
            run(connection, "DROP PROCEDURE IF EXISTS " + settings.table(procedureName(rowsName(generation))));
        }
        run(connection, "DROP TABLE IF EXISTS " + settings.table(rowsName(generation)));
    }

    private static void run(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }
}
