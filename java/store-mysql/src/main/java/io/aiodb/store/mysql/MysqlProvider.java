package io.aiodb.store.mysql;

import io.aiodb.store.Durability;
import io.aiodb.store.Parameters;
import io.aiodb.store.ServerDirectory;
import io.aiodb.store.Store;
import io.aiodb.store.StoreException;
import io.aiodb.store.StoreProvider;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;

/**
 * Opens stores whose rows lie in InnoDB tables of a server of MariaDB or MySQL that is there already. The directory has the
 * store's identity only, and is needed to open it again. Parameters:
 *
 * <ul>
 *   <li>{@code host}: default 127.0.0.1
 *   <li>{@code port}: default 3306
 *   <li>{@code user}: default {@code aiodb}; it may make the database, or everything in it
 *   <li>{@code password_file}: a file whose first line is the password; default none
 *   <li>{@code database}: the schema that has the store's tables and nothing else, made if it is missing; letters, digits and
 *       underscores; default {@code aiodb_} and the store's identity
 *   <li>{@code durability}: the strongest class that writes may have: {@code sync} (default) needs a server with
 *       {@code innodb_flush_log_at_trx_commit} 1, {@code interval} one with 1 or 2, {@code none} takes any
 *   <li>{@code timeout_millis}: how long an answer may take; 250 to 3600000, default 10000
 *   <li>{@code connections}: how many reads go on at a time, and how many writes; default 16
 *   <li>{@code views}: how many snapshots and long scans may be open at a time; default 64
 *   <li>{@code access}: how single rows are read: {@code jdbc} (default), as all else; {@code direct}, below SQL, through
 *       MariaDB's plugin HandlerSocket, which must be loaded there; {@code handler}, by the statement of this name; or
 *       {@code procedure}, by a stored procedure for each table, which needs MariaDB, or MySQL 8.0.29 or later
 *   <li>{@code direct_port}: where HandlerSocket listens for readers; default 9998
 *   <li>{@code direct_secret_file}: a file whose first line is its {@code handlersocket_plain_secret}; default none
 *   <li>{@code owner}: a word for whoever the store belongs to; another owner's directory is refused. Default none
 * </ul>
 */
public final class MysqlProvider implements StoreProvider {
    private static final int MAX_CONNECTIONS = 10_000;

    @Override
    public String name() {
        return MysqlStore.NAME;
    }

    @Override
    public Store open(Path directory, Parameters parameters) {
        String host = parameters.text("host", "127.0.0.1");
        int port = (int) parameters.number("port", 3306, 1, 65_535);
        String user = parameters.text("user", "aiodb");
        String password = Objects.requireNonNullElse(parameters.firstLine("password_file"), "");
        String database = parameters.text("database", null);
        Durability durability = parameters.choice("durability", Durability.SYNC);
        Duration timeout = Duration.ofMillis(parameters.number("timeout_millis", 10_000, 250, 3_600_000));
        int connections = (int) parameters.number("connections", 16, 1, MAX_CONNECTIONS);
        int views = (int) parameters.number("views", 64, 1, MAX_CONNECTIONS);
        MysqlSettings.Access access = parameters.choice("access", MysqlSettings.Access.JDBC);
        int directPort = (int) parameters.number("direct_port", 9998, 1, 65_535);
        String directSecret = Objects.requireNonNullElse(parameters.firstLine("direct_secret_file"), "");
        String owner = parameters.text("owner", null);
        parameters.refuseOthers();
        if (database != null && !database.matches("[A-Za-z0-9_]{1,64}")) {
            throw new StoreException.Configuration("mysql: database = " + database
                    + ": give 1 to 64 letters, digits and underscores");
        }
        return ServerDirectory.openStore(directory, MysqlStore.NAME, owner, own -> {
            String schema = database == null ? "aiodb_" + own.id().toString().replace('-', '_') : database;
            return new MysqlStore(own, new MysqlSettings(
                    host, port, user, password, schema, durability, timeout, connections, views, access, directPort,
                    directSecret));
        });
    }
}
