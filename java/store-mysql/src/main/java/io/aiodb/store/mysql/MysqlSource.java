package io.aiodb.store.mysql;

import io.aiodb.store.StoreException;
import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLFeatureNotSupportedException;
import java.util.Properties;
import java.util.logging.Logger;
import javax.sql.DataSource;
import org.mariadb.jdbc.Driver;

/**
 * Makes connections, each to a server that has the store as this process left it and keeps it as durably as was asked for:
 * one that ends and comes back as something less is not used.
 */
final class MysqlSource implements DataSource {
    private final MysqlSettings settings;
    private final Driver driver = new Driver();

    /** How often the store had been opened when this process did; before that, no connection is compared with it. */
    private volatile long epoch;

    private volatile String id;
    private volatile int maxValueBytes;

    /** Why no connection could be made last, and when that was; null if one could. */
    private volatile Failure failure;

    private record Failure(SQLException reason, long atNanos) {}

    MysqlSource(MysqlSettings settings) {
        this.settings = settings;
    }

    /** Says which store further connections have to find. */
    void expect(String store, long opened, int valueBytes) {
        maxValueBytes = valueBytes;
        epoch = opened;
        id = store;
    }

    /** How often the store had been opened when this process did. */
    long epoch() {
        return epoch;
    }

    /** Why no connection could be made since a time, as {@link System#nanoTime} gives it; null if nothing has failed. */
    SQLException failureSince(long nanos) {
        Failure last = failure;
        return last != null && last.atNanos - nanos >= 0 ? last.reason : null;
    }

    @Override
    public Connection getConnection() throws SQLException {
        try {
            Connection made = connect();
            failure = null;
            return made;
        } catch (SQLException reason) {
            failure = new Failure(reason, System.nanoTime());
            throw reason;
        }
    }

    private Connection connect() throws SQLException {
        Properties options = new Properties();
        options.setProperty("user", settings.user());
        options.setProperty("password", settings.password());
        String millis = Long.toString(settings.timeout().toMillis());
        options.setProperty("connectTimeout", millis);
        options.setProperty("socketTimeout", millis);
        options.setProperty("useServerPrepStmts", "true");
        options.setProperty("allowPublicKeyRetrieval", "true");
        options.setProperty("transactionIsolation", "REPEATABLE-READ");
        long lockSeconds = Math.max(1, settings.timeout().toSeconds() / 2);
        options.setProperty("sessionVariables", "sql_mode='STRICT_ALL_TABLES',innodb_lock_wait_timeout=" + lockSeconds);
        Connection connection = driver.connect("jdbc:mariadb://" + settings.host() + ":" + settings.port() + "/", options);
        try {
            MysqlChecks checks = new MysqlChecks(connection);
            checks.check(settings, maxValueBytes);
            if (id != null) {
                checkStore(connection);
            }
            return connection;
        } catch (StoreException refused) {
            connection.close();
            throw new MysqlErrors.StoreFailure(refused);
        } catch (SQLException failure) {
            connection.close();
            throw failure;
        }
    }

    private void checkStore(Connection connection) throws SQLException {
        String select = "SELECT id, epoch FROM " + settings.table(MysqlSchema.STORE);
        try (PreparedStatement statement = connection.prepareStatement(select);
                ResultSet found = statement.executeQuery()) {
            if (!found.next() || !found.getString(1).equals(id)) {
                throw new StoreException.Unavailable(settings.server() + " has no longer this store in the database "
                        + settings.database() + ": bring the server's data back");
            }
            if (found.getLong(2) != epoch) {
                throw takenOver(settings);
            }
        }
    }

    static StoreException takenOver(MysqlSettings settings) {
        return new StoreException.Unavailable("the store in the database " + settings.database() + " of " + settings.server()
                + " was opened by another process since");
    }

    @Override
    public Connection getConnection(String user, String password) throws SQLException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public PrintWriter getLogWriter() {
        return null;
    }

    @Override
    public void setLogWriter(PrintWriter out) {}

    @Override
    public void setLoginTimeout(int seconds) {}

    @Override
    public int getLoginTimeout() {
        return 0;
    }

    @Override
    public Logger getParentLogger() throws SQLFeatureNotSupportedException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public <T> T unwrap(Class<T> kind) throws SQLException {
        throw new SQLFeatureNotSupportedException();
    }

    @Override
    public boolean isWrapperFor(Class<?> kind) {
        return false;
    }
}
