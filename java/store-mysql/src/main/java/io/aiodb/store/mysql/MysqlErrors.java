package io.aiodb.store.mysql;

import io.aiodb.store.StoreException;
import java.sql.SQLException;
import java.sql.SQLNonTransientConnectionException;
import java.sql.SQLTransientConnectionException;
import java.util.Set;

/** Failures of the server in the words of stores. The numbers are MySQL's, which MariaDB shares. */
final class MysqlErrors {
    private static final int DEADLOCK = 1213;
    private static final int NULL_VALUE = 1048;

    private static final Set<Integer> ACCESS_DENIED = Set.of(1044, 1045, 1142, 1227, 1698);
    private static final Set<Integer> FULL = Set.of(1021, 1114, 1041);
    private static final Set<Integer> NOT_THERE = Set.of(1049, 1146, 1051);
    private static final Set<Integer> PASSING = Set.of(1040, 1053, 1205, 1290, 1792, 1836, 1927);
    private static final Set<Integer> TOO_LONG = Set.of(1153, 1301, 1406);
    private static final Set<Integer> DAMAGED = Set.of(126, 1034, 1712, 1877, 1932);

    private MysqlErrors() {}

    /** Whether the transaction was given up for another one, and can be done again. */
    static boolean isDeadlock(SQLException failure) {
        return failure.getErrorCode() == DEADLOCK || "40001".equals(failure.getSQLState());
    }

    /** Whether the connection is lost, and what was under way not known. */
    static boolean isLost(SQLException failure) {
        String state = failure.getSQLState();
        return failure instanceof SQLTransientConnectionException
                || failure instanceof SQLNonTransientConnectionException && !ACCESS_DENIED.contains(failure.getErrorCode())
                || state != null && state.startsWith("08");
    }

    /** The exception that callers of the store see. */
    static StoreException translated(SQLException failure, MysqlSettings settings) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof StoreFailure found) {
                return found.failure();
            }
        }
        int code = failure.getErrorCode();
        String said = settings.server() + " says: " + failure.getMessage();
        if (ACCESS_DENIED.contains(code)) {
            return new StoreException.Configuration(said + ": set `user` and `password_file`, or grant the user what it needs",
                    failure);
        }
        if (isLost(failure)) {
            return new StoreException.Unavailable(settings.server() + " cannot be reached, or does not answer: "
                    + failure.getMessage() + "; a write that was under way may have happened or not", failure);
        }
        if (PASSING.contains(code) || isDeadlock(failure)) {
            return new StoreException.Unavailable(said, failure);
        }
        if (NOT_THERE.contains(code)) {
            return new StoreException.Unavailable(
                    said + ": it no longer has the store as this process left it", failure);
        }
        if (FULL.contains(code)) {
            return new StoreException.Full(said);
        }
        if (TOO_LONG.contains(code)) {
            return new StoreException.Limit(said);
        }
        if (code == NULL_VALUE) {
            return new StoreException.Limit("an append makes a value longer than values may be in this store");
        }
        return DAMAGED.contains(code) ? new StoreException.Corruption(said) : new StoreException.Failed(said, failure);
    }

    /** Carries an exception of the store through a library that knows SQL's only. */
    static final class StoreFailure extends SQLException {
        private static final long serialVersionUID = 1;

        private final StoreException failure;

        StoreFailure(StoreException failure) {
            super(failure.getMessage(), failure);
            this.failure = failure;
        }

        StoreException failure() {
            return failure;
        }
    }
}
