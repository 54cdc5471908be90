package io.aiodb.store.mysql;

import io.aiodb.store.Batch;
import io.aiodb.store.Capabilities;
import io.aiodb.store.Durability;
import io.aiodb.store.Lifecycle;
import io.aiodb.store.PlacedStore;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.Snapshot;
import io.aiodb.store.Statistics;
import io.aiodb.store.StoreException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/** Tables of InnoDB; {@link MysqlProvider} says how. A batch is a transaction, a snapshot a transaction that reads. */
final class MysqlStore extends PlacedStore<MysqlTable, Long> {
    static final String NAME = "mysql";

    /** The longest key of an index with pages of 16 KiB. */
    static final int MAX_KEY_BYTES = 3072;

    /** How often a transaction is begun again that the server gave up for another one. */
    private static final int MAX_ATTEMPTS = 1000;

    private final Lifecycle lifecycle = new Lifecycle();
    private final ServerDirectory own;
    private final Capabilities capabilities;
    private final MysqlServer server;
    private final MysqlRemoval removal;
    private final MysqlSyncs syncs;

    /** Snapshots and scans that are open. */
    private final Set<MysqlView> views = ConcurrentHashMap.newKeySet();

    /** Whether a change of tables has failed, so that it is not known which there are. */
    private volatile boolean doubtful = true;

    MysqlStore(ServerDirectory own, MysqlSettings settings) {
        super(MysqlTable.class);
        this.own = own;
        this.server = new MysqlServer(settings, own);
        this.syncs = new MysqlSyncs(server);
        this.removal = new MysqlRemoval(this);
        this.capabilities = new Capabilities(
                NAME, MAX_KEY_BYTES, server.maxValueBytes(), MAX_KEY_BYTES, server.classes(), false, false, true, true, false);
        try {
            findTables();
        } catch (RuntimeException failure) {
            removal.close();
            server.close();
            throw failure;
        }
        removeLater();
    }

    @Override
    public Capabilities capabilities() {
        return capabilities;
    }

    @Override
    protected MysqlTable create(String name) {
        MysqlTable[] made = new MysqlTable[1];
        change(() -> made[0] = tables.create(name, () -> new MysqlTable(this, name, makeRows(name))));
        return made[0];
    }

    @Override
    protected void apply(Batch batch, Durability durability) {
        call(() -> {
            if (batch.size() > 0) {
                apply(batch);
            }
            syncs.afterWrite(durability);
            return null;
        });
    }

    private void apply(Batch batch) {
        for (int attempt = 1; ; attempt++) {
            boolean last = attempt == MAX_ATTEMPTS;
            if (server.write(connection -> applied(batch, connection, last))) {
                return;
            }
        }
    }

    /** Whether the batch was applied; false if it is to be tried again. */
    private boolean applied(Batch batch, Connection connection, boolean last) throws SQLException {
        try (MysqlWrites writes = new MysqlWrites(this, connection)) {
            try {
                requireOwn(connection);
                batch.replay(writes);
                writes.flush();
                connection.commit();
                return true;
            } catch (MysqlWrites.Failure carried) {
                throw carried.failure();
            }
        } catch (SQLException failure) {
            // The server has rolled it back.
            if (MysqlErrors.isDeadlock(failure) && !last) {
                connection.rollback();
                return false;
            }
            throw failure;
        }
    }

    /** Refuses to write where another process has opened the store, and keeps others from that until the transaction ends. */
    private void requireOwn(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement("SELECT 1 FROM "
                + server.settings().table(MysqlSchema.STORE) + " WHERE one = 1 AND epoch = ? LOCK IN SHARE MODE")) {
            statement.setLong(1, server.epoch());
            try (ResultSet found = statement.executeQuery()) {
                if (!found.next()) {
                    throw MysqlSource.takenOver(server.settings());
                }
            }
        }
    }

    @Override
    public Snapshot snapshot() {
        return call(() -> {
            MysqlView view = new MysqlView(this);
            try {
                return new MysqlSnapshot(this, view, tables.places());
            } catch (RuntimeException failure) {
                view.close();
                throw failure;
            }
        });
    }

    @Override
    public void sync() {
        call(() -> {
            syncs.sync();
            return null;
        });
    }

    @Override
    public Statistics statistics() {
        return call(() -> {
            long rows = 0;
            for (MysqlTable table : tables.all()) {
                rows += table.countRows();
            }
            long disk = server.read(connection -> MysqlReads.diskBytes(connection, server.settings()));
            return new Statistics(disk, rows, Map.of("views", (long) views.size()));
        });
    }

    @Override
    public void close() {
        lifecycle.close(() -> {
            removal.close();
            try {
                syncs.beforeClose();
            } finally {
                List.copyOf(views).forEach(MysqlView::close);
                server.close();
                own.close();
            }
        });
    }

    @Override
    protected <T> T look(Supplier<T> body) {
        return call(body);
    }

    /** A call, unless the store was closed. */
    <T> T call(Supplier<T> body) {
        return lifecycle.call(() -> {
            if (doubtful) {
                findTables();
            }
            return body.get();
        });
    }

    /** A call that needs to know nothing of tables. */
    <T> T run(Supplier<T> body) {
        return lifecycle.call(body);
    }

    /** A call while no other one runs. */
    <T> T alone(Supplier<T> body) {
        return lifecycle.callAlone(body);
    }

    /** A call that changes tables, while no other one runs. */
    void change(Runnable body) {
        alone(() -> {
            if (doubtful) {
                findTables();
            }
            doubtful = true;
            try {
                body.run();
                doubtful = false;
            } catch (StoreException.TableExists | StoreException.NoSuchTable nothingChanged) {
                doubtful = false;
                throw nothingChanged;
            }
            syncs.sync();
            return null;
        });
        removal.note();
        removeLater();
    }

    /** Makes the place for rows of a table and gives it the name. Made in a call that runs alone. */
    long makeRows(String name) {
        return server.read(connection -> {
            long generation = server.schema().makeRows(connection, server.epoch());
            server.schema().name(connection, name, generation);
            return generation;
        });
    }

    /** Takes a table's name away. Made in a call that runs alone. */
    void forget(MysqlTable table) {
        server.write(connection -> {
            requireOwn(connection);
            server.schema().forget(connection, table.name());
            connection.commit();
            return null;
        });
        tables.remove(table);
    }

    /** What emptied and dropped tables have left is dropped in the background. */
    void removeLater() {
        removal.begin();
    }

    Set<MysqlView> views() {
        return views;
    }

    MysqlServer server() {
        return server;
    }

    /** The tables as the server has them. */
    private synchronized void findTables() {
        if (!doubtful) {
            return;
        }
        tables.update(
                server.read(server.schema()::generations), (name, generation) -> new MysqlTable(this, name, generation));
        doubtful = false;
    }
}
