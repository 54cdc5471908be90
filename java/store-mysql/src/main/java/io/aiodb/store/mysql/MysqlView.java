package io.aiodb.store.mysql;

import io.aiodb.store.StoreException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;

/** The store at one moment: a transaction that has a connection of its own, and ends with it. */
final class MysqlView implements AutoCloseable {
    private final MysqlStore store;
    private final Connection connection;
    private boolean closed;

    /** Why it is over although nobody closed it; null if it is not. */
    private String ended;

    MysqlView(MysqlStore store) {
        this.store = store;
        try {
            connection = store.server().view();
        } catch (SQLException failure) {
            throw store.server().failed(failure);
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY");
        } catch (SQLException failure) {
            store.server().release(connection);
            throw store.server().failed(failure);
        }
        store.views().add(this);
    }

    /** Reads as of that moment. */
    synchronized <T> T read(MysqlServer.Action<T> action) {
        if (closed) {
            throw new StoreException.Closed("the snapshot or scan was closed");
        }
        if (ended != null) {
            throw new StoreException.SnapshotEnded(ended);
        }
        try {
            return action.run(connection);
        } catch (SQLException failure) {
            StoreException said = store.server().failed(failure);
            if (MysqlErrors.isLost(failure)) {
                ended = said.getMessage();
                throw new StoreException.SnapshotEnded(ended);
            }
            throw said;
        }
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            store.views().remove(this);
            store.server().release(connection);
        }
    }
}
