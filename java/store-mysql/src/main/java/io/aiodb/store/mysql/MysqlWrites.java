package io.aiodb.store.mysql;

import io.aiodb.store.Batch;
import io.aiodb.store.Bytes;
import io.aiodb.store.Table;
import java.nio.ByteBuffer;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/** Applies a batch in one transaction. Operations of the same form that follow each other go to the server together. */
final class MysqlWrites implements Batch.Visitor, AutoCloseable {
    private static final int GROUP_OPERATIONS = 1000;
    private static final int GROUP_BYTES = 1 << 20;

    private final MysqlStore store;
    private final Connection connection;

    /** The statement whose parameters are collected, and its text; null if there are none. */
    private PreparedStatement statement;

    private String text;
    private int operations;
    private long bytes;

    MysqlWrites(MysqlStore store, Connection connection) {
        this.store = store;
        this.connection = connection;
    }

    /** Carries a failure of the server through the batch. */
    static final class Failure extends RuntimeException {
        private static final long serialVersionUID = 1;

        private final SQLException failure;

        Failure(SQLException failure) {
            super(failure);
            this.failure = failure;
        }

        SQLException failure() {
            return failure;
        }
    }

    @Override
    public void put(Table table, ByteBuffer key, ByteBuffer value) {
        add("INSERT INTO " + rows(table) + " (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v = VALUES(v)", key, value);
    }

    @Override
    public void delete(Table table, ByteBuffer key) {
        add("DELETE FROM " + rows(table) + " WHERE k = ?", key);
    }

    @Override
    public void append(Table table, ByteBuffer key, ByteBuffer operand) {
        // A value that would be too long is none, which the column refuses.
        add(
                "INSERT INTO " + rows(table) + " (k, v) VALUES (?, ?) ON DUPLICATE KEY UPDATE v ="
                        + " IF(LENGTH(v) + LENGTH(VALUES(v)) > " + store.capabilities().maxValueBytes()
                        + ", NULL, CONCAT(v, VALUES(v)))",
                key,
                operand);
    }

    @Override
    public void deleteRange(Table table, ByteBuffer from, ByteBuffer to) {
        String delete = "DELETE FROM " + rows(table);
        if (from.hasRemaining() && to.hasRemaining()) {
            add(delete + " WHERE k >= ? AND k < ?", from, to);
        } else if (from.hasRemaining()) {
            add(delete + " WHERE k >= ?", from);
        } else if (to.hasRemaining()) {
            add(delete + " WHERE k < ?", to);
        } else {
            add(delete);
        }
    }

    /** Sends what was collected. */
    void flush() throws SQLException {
        if (statement == null) {
            return;
        }
        try (PreparedStatement sent = statement) {
            statement = null;
            if (operations == 1) {
                sent.executeUpdate();
            } else {
                sent.addBatch();
                sent.executeBatch();
            }
        }
    }

    private void add(String wanted, ByteBuffer... parameters) {
        try {
            if (statement != null && (!wanted.equals(text) || operations == GROUP_OPERATIONS || bytes > GROUP_BYTES)) {
                flush();
            }
            if (statement == null) {
                statement = connection.prepareStatement(wanted);
                text = wanted;
                operations = 0;
                bytes = 0;
            } else {
                statement.addBatch();
            }
            for (int at = 0; at < parameters.length; at++) {
                statement.setBytes(at + 1, Bytes.of(parameters[at]));
                bytes += parameters[at].remaining();
            }
            operations++;
        } catch (SQLException failure) {
            throw new Failure(failure);
        }
    }

    private String rows(Table table) {
        return store.server().settings().table(store.own(table).rows());
    }

    @Override
    public void close() throws SQLException {
        if (statement != null) {
            statement.close();
        }
    }
}
