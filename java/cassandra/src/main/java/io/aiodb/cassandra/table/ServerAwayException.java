package io.aiodb.cassandra.table;

/**
 * The server of a store did not answer a request. {@link ServerOutage} has counted it and tells the operator, so this one has
 * neither a stack trace nor a cause: every request that is refused makes one.
 */
final class ServerAwayException extends RuntimeException {
    private static final long serialVersionUID = 1;

    ServerAwayException(String message) {
        super(message, null, false, false);
    }
}
