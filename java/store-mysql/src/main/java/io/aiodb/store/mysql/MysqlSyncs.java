package io.aiodb.store.mysql;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;

/**
 * When the server syncs its log. With {@code innodb_flush_log_at_trx_commit} 1 each commit waits for that; otherwise it does so
 * about once a second, and who needs a sync waits until it has come as far as it is now.
 */
final class MysqlSyncs {
    private static final long WAIT_MILLIS = 20;

    private final MysqlServer server;

    /** Stays true: which writes were synced is not asked. */
    private volatile boolean unsynced;

    MysqlSyncs(MysqlServer server) {
        this.server = server;
    }

    /** Waits as long as a write of this class has to. */
    void afterWrite(Durability durability) {
        if (durability != Durability.NONE && !server.classes().contains(durability) || durability == Durability.SYNC) {
            sync();
        } else if (durability == Durability.INTERVAL) {
            unsynced = true;
        }
    }

    /** Waits until all that was committed survives a power cut. */
    void sync() {
        if (server.classes().size() == 1) {
            return;
        }
        long wanted = position("Innodb_lsn_current");
        long deadline = System.nanoTime() + server.settings().timeout().toNanos();
        while (position("Innodb_lsn_flushed") < wanted) {
            if (System.nanoTime() > deadline) {
                throw new StoreException.Unavailable(server.settings().server() + " does not sync its log within "
                        + server.settings().timeout().toMillis() + " ms; what was written may not survive a power cut");
            }
            try {
                Thread.sleep(WAIT_MILLIS);
            } catch (InterruptedException interruption) {
                Thread.currentThread().interrupt();
                throw new StoreException.Failed("interrupted while the server had to sync its log", interruption);
            }
        }
    }

    /** Syncs what was written in class interval. */
    void beforeClose() {
        if (unsynced) {
            try {
                sync();
            } catch (StoreException.Unavailable failure) {
                throw new StoreException.Failed("writes of class interval may not survive a power cut of the server: "
                        + failure.getMessage(), failure);
            }
        }
    }

    private long position(String name) {
        return server.read(connection -> {
            Map<String, Long> found = positions(connection);
            if (!found.containsKey(name)) {
                throw new StoreException.Unsupported("class sync on a server that does not say how far it has synced (`" + name
                        + "`): set `innodb_flush_log_at_trx_commit` to 1 there");
            }
            return found.get(name);
        });
    }

    private static Map<String, Long> positions(Connection connection) throws SQLException {
        Map<String, Long> positions = new HashMap<>();
        try (PreparedStatement statement = connection.prepareStatement("SHOW GLOBAL STATUS LIKE 'Innodb_lsn%'");
                ResultSet found = statement.executeQuery()) {
            while (found.next()) {
                positions.put(found.getString(1), found.getLong(2));
            }
        }
        return positions;
    }
}
