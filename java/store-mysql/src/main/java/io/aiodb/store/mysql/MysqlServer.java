package io.aiodb.store.mysql;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import io.aiodb.store.Durability;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.StoreException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;

/** The connections with a store's server, in pools: for single reads, for writes, and for views, which last. */
final class MysqlServer implements AutoCloseable {
    /** Something that a connection is for. */
    interface Action<T> {
        T run(Connection connection) throws SQLException;
    }

    /** After a connection failed none is tried for so long. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /** Who waits for a connection of a pool asks so often whether making one has failed; the least that the pool takes. */
    private static final long LOOK_MILLIS = 250;

    private final MysqlSettings settings;
    private final MysqlSource source;
    private final MysqlSchema schema;
    private final int maxValueBytes;
    private final Set<Durability> classes;
    private final HikariDataSource reads;
    private final HikariDataSource writes;
    private final HikariDataSource views;
    private final Semaphore freeViews;

    /** Null where single rows are not read through HandlerSocket. */
    private final MysqlDirect direct;

    /** Whether the last call found no server: the next one looks first, so that not all wait for it. */
    private volatile StoreException down;

    /** The tables whose procedures are there, if rows are read by them. */
    private final Set<String> withProcedure = ConcurrentHashMap.newKeySet();

    private volatile long lastFailureNanos;

    /** Held by who looks. */
    private final Lock looking = new ReentrantLock();

    MysqlServer(MysqlSettings settings, ServerDirectory own) {
        this.settings = settings;
        this.source = new MysqlSource(settings);
        this.schema = new MysqlSchema(settings, own);
        try (Connection connection = source.getConnection()) {
            MysqlChecks checks = new MysqlChecks(connection);
            maxValueBytes = checks.maxValueBytes();
            classes = checks.classes();
            source.expect(own.id().toString(), schema.open(connection), maxValueBytes);
            direct = direct(own);
        } catch (SQLException failure) {
            throw MysqlErrors.translated(failure, settings);
        }
        freeViews = new Semaphore(settings.views());
        reads = pool("reads", settings.connections(), true);
        writes = pool("writes", settings.connections(), false);
        views = pool("views", settings.views(), false);
    }

    private MysqlDirect direct(ServerDirectory own) {
        if (settings.access() != MysqlSettings.Access.DIRECT) {
            return null;
        }
        MysqlDirect made = new MysqlDirect(settings, own.id().toString(), source.epoch(), this::isDown);
        made.check();
        return made;
    }

    private HikariDataSource pool(String name, int size, boolean autoCommit) {
        HikariConfig configuration = new HikariConfig();
        configuration.setDataSource(source);
        configuration.setPoolName("aiodb-mysql-" + name);
        configuration.setMaximumPoolSize(size);
        configuration.setMinimumIdle(0);
        configuration.setAutoCommit(autoCommit);
        configuration.setConnectionTimeout(LOOK_MILLIS);
        configuration.setValidationTimeout(settings.timeout().toMillis());
        // What is wrong with the server is for the calls to say.
        configuration.setInitializationFailTimeout(-1);
        return new HikariDataSource(configuration);
    }

    MysqlSettings settings() {
        return settings;
    }

    MysqlSchema schema() {
        return schema;
    }

    int maxValueBytes() {
        return maxValueBytes;
    }

    Set<Durability> classes() {
        return classes;
    }

    long epoch() {
        return source.epoch();
    }

    /** The value of a key in a table of this name, or null. */
    byte[] get(String table, byte[] key) {
        return switch (settings.access()) {
            case DIRECT -> getDirectly(table, key);
            case HANDLER -> read(connection -> MysqlReads.getByHandler(connection, settings.table(table), key));
            case PROCEDURE -> read(connection -> getByProcedure(connection, table, key));
            case JDBC -> read(connection -> MysqlReads.get(connection, settings.table(table), key));
        };
    }

    private byte[] getDirectly(String table, byte[] key) {
        if (down != null) {
            look();
        }
        return direct.get(table, key);
    }

    private byte[] getByProcedure(Connection connection, String table, byte[] key) throws SQLException {
        if (!withProcedure.contains(table)) {
            schema.makeProcedure(connection, table);
            withProcedure.add(table);
        }
        return MysqlReads.getByProcedure(connection, settings.table(MysqlSchema.procedureName(table)), key);
    }

    /** To be called before tables are dropped. */
    void letGoOfTables() {
        withProcedure.clear();
        if (direct != null) {
            direct.closeIdle();
        }
    }

    /** Reads with a connection whose statements are transactions of their own. */
    <T> T read(Action<T> action) {
        return with(reads, action);
    }

    /** Writes with a connection on which nothing is committed yet. */
    <T> T write(Action<T> action) {
        return with(writes, action);
    }

    private <T> T with(HikariDataSource pool, Action<T> action) {
        try (Connection connection = take(pool)) {
            return action.run(connection);
        } catch (SQLException failure) {
            throw failed(failure);
        }
    }

    /** A connection for a view, to be given back by {@link #release}. */
    Connection view() throws SQLException {
        if (!freeViews.tryAcquire()) {
            throw new MysqlErrors.StoreFailure(new StoreException.Limit("too many snapshots and scans are open: close those that"
                    + " are no longer used, or open the store with more `views`"));
        }
        try {
            return take(views);
        } catch (SQLException | RuntimeException failure) {
            freeViews.release();
            throw failure;
        }
    }

    /** Gives a view's connection back, and its transaction up. */
    void release(Connection view) {
        try {
            view.close();
        } catch (SQLException lost) {
            // The server gives up what is lost.
        } finally {
            freeViews.release();
        }
    }

    /** A connection of a pool. The pool itself would go on waiting where none can be made. */
    private Connection take(HikariDataSource pool) throws SQLException {
        if (down != null) {
            look();
        }
        long began = System.nanoTime();
        while (true) {
            try {
                return pool.getConnection();
            } catch (SQLTransientConnectionException none) {
                SQLException failure = source.failureSince(began);
                if (failure != null) {
                    throw failure;
                }
                if (System.nanoTime() - began > settings.timeout().toNanos()) {
                    throw new MysqlErrors.StoreFailure(new StoreException.Unavailable("all " + pool.getMaximumPoolSize()
                            + " connections of the pool " + pool.getPoolName() + " with " + settings.server() + " were in use for "
                            + settings.timeout().toMillis() + " ms: give the store more, or less to do", none));
                }
            }
        }
    }

    /** Looks whether the server is back. Nobody waits long for another who does. */
    private void look() {
        StoreException last = down;
        if (last == null) {
            return;
        }
        if (System.nanoTime() - lastFailureNanos < PAUSE_NANOS || !lockToLook()) {
            throw new StoreException.Unavailable(last.getMessage());
        }
        try {
            if (down != null) {
                source.getConnection().close();
                down = null;
            }
        } catch (SQLException failure) {
            throw failed(failure);
        } finally {
            looking.unlock();
        }
    }

    private boolean lockToLook() {
        try {
            return looking.tryLock(PAUSE_NANOS, TimeUnit.NANOSECONDS);
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private void isDown(StoreException said) {
        lastFailureNanos = System.nanoTime();
        down = said;
        // Connections that nobody has tried since are lost as well.
        for (HikariDataSource pool : List.of(reads, writes, views)) {
            pool.getHikariPoolMXBean().softEvictConnections();
        }
    }

    /** The exception for callers; takes note where there is no server. */
    StoreException failed(SQLException failure) {
        StoreException said = MysqlErrors.translated(failure, settings);
        if (said instanceof StoreException.Configuration) {
            // Only who opens a store can be told that its configuration makes no sense.
            said = new StoreException.Unavailable(said.getMessage(), said);
        }
        if (MysqlErrors.isLost(failure)) {
            isDown(said);
        }
        return said;
    }

    @Override
    public void close() {
        letGoOfTables();
        views.close();
        writes.close();
        reads.close();
    }
}
