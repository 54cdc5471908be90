package io.aiodb.store.mysql;

import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** What a server's configuration promises; refuses one that promises less than was asked for, and says what to change. */
final class MysqlChecks {
    private static final String FLUSH = "innodb_flush_log_at_trx_commit";
    private static final String PACKET = "max_allowed_packet";

    /** Of a packet, for what stands in it beside a key and a value. */
    private static final int PACKET_OVERHEAD = 64 << 10;

    private static final int MAX_VALUE_BYTES = 1 << 30;

    private final Map<String, String> variables = new HashMap<>();

    MysqlChecks(Connection connection) throws SQLException {
        String names = String.join("', '", List.of(
                FLUSH, PACKET, "innodb_doublewrite", "innodb_flush_method", "log_bin", "sync_binlog", "read_only"));
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery(
                        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('" + names + "')")) {
            while (found.next()) {
                variables.put(found.getString(1), found.getString(2));
            }
        }
    }

    /** The longest value that the server takes. */
    int maxValueBytes() {
        long packet = Long.parseLong(variables.get(PACKET));
        return (int) Math.min(MAX_VALUE_BYTES, packet) - PACKET_OVERHEAD;
    }

    /** The classes that writes have here; others get the next stronger one. */
    Set<Durability> classes() {
        return switch (variables.get(FLUSH)) {
            case "0" -> EnumSet.of(Durability.SYNC, Durability.NONE);
            case "2" -> EnumSet.of(Durability.SYNC, Durability.INTERVAL);
            default -> EnumSet.of(Durability.SYNC);
        };
    }

    /**
     * Refuses a server that is not as it has to be.
     *
     * @param leastValueBytes what the store has promised
     */
    void check(MysqlSettings settings, int leastValueBytes) {
        List<String> wrong = new ArrayList<>();
        if (!"OFF".equals(variables.getOrDefault("read_only", "OFF"))) {
            wrong.add("it is read only: name the primary, or set `read_only` to OFF");
        }
        if (maxValueBytes() < leastValueBytes) {
            wrong.add("`" + PACKET + "` is " + variables.get(PACKET) + ": set it to " + (leastValueBytes + PACKET_OVERHEAD));
        }
        Durability durability = settings.durability();
        if (durability != Durability.NONE) {
            checkFlushes(durability, wrong);
        }
        if (!wrong.isEmpty()) {
            throw new StoreException.Configuration(settings.server() + " cannot have this store with `durability` "
                    + spelled(durability) + ": " + String.join("; ", wrong));
        }
    }

    private void checkFlushes(Durability durability, List<String> wrong) {
        String flush = variables.get(FLUSH);
        if (durability == Durability.SYNC && !flush.equals("1")) {
            wrong.add("`" + FLUSH + "` is " + flush + ", so acknowledged rows would not survive a power cut: set it to 1 there,"
                    + " or `durability` to interval here");
        } else if (flush.equals("0")) {
            wrong.add("`" + FLUSH + "` is 0, so acknowledged rows would not survive the end of the server: set it to 1 or 2");
        }
        if (variables.getOrDefault("innodb_doublewrite", "ON").equals("OFF")) {
            wrong.add("`innodb_doublewrite` is OFF, so a power cut may tear pages: set it to ON");
        }
        String method = variables.getOrDefault("innodb_flush_method", "").toLowerCase(Locale.ROOT);
        if (method.equals("nosync") || method.equals("littlesync")) {
            wrong.add("`innodb_flush_method` is " + method + ": set it to O_DIRECT or fsync");
        }
        if (durability == Durability.SYNC && "ON".equals(variables.get("log_bin")) && !"1".equals(variables.get("sync_binlog"))) {
            wrong.add("`log_bin` is ON and `sync_binlog` is " + variables.get("sync_binlog")
                    + ", so what the binary log has lost would be rolled back: set it to 1");
        }
    }

    /** A class of durability as parameters call it. */
    static String spelled(Durability durability) {
        return durability.name().toLowerCase(Locale.ROOT);
    }
}
