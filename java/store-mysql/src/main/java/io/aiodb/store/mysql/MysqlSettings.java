package io.aiodb.store.mysql;

import io.aiodb.store.Durability;
import java.time.Duration;

/**
 * How a MySQL store reaches its server, and what it expects of it.
 *
 * @param host of the server
 * @param port of the server
 * @param user that makes the store's database, or may make tables in it
 * @param password may be empty
 * @param database the schema that has the store's tables, and nothing else
 * @param durability the strongest class of writes: a server that gives less is refused
 * @param timeout how long an answer may take
 * @param connections for reads, and as many for writes
 * @param views for snapshots and scans, of which each takes one
 * @param access how single rows are read
 * @param directPort where HandlerSocket listens for readers
 * @param directSecret what HandlerSocket wants to hear; empty for nothing
 */
record MysqlSettings(
        String host,
        int port,
        String user,
        String password,
        String database,
        Durability durability,
        Duration timeout,
        int connections,
        int views,
        Access access,
        int directPort,
        String directSecret) {
    /** How single rows are read. */
    enum Access {
        /** By SQL, like all else. */
        JDBC,
        /** Below SQL, through HandlerSocket. */
        DIRECT,
        /** By the statement {@code HANDLER}, which plans nothing. */
        HANDLER,
        /** By a stored procedure for each table. */
        PROCEDURE
    }

    /** The server, for messages. */
    String server() {
        return "the MySQL at " + host + ":" + port;
    }

    /** A table's name as statements have it. */
    String table(String name) {
        return "`" + database + "`.`" + name + "`";
    }
}
