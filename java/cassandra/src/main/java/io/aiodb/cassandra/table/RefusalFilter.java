package io.aiodb.cassandra.table;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.LoggerContextListener;
import ch.qos.logback.classic.turbo.TurboFilter;
import ch.qos.logback.core.spi.FilterReply;
import java.util.Set;
import org.apache.cassandra.service.StorageProxy;
import org.apache.cassandra.utils.JVMStabilityInspector;
import org.slf4j.LoggerFactory;
import org.slf4j.Marker;

/**
 * Drops what Cassandra logs of single requests that a {@link ServerOutage} has counted. Its own messages about them come from
 * {@code StorageProxy} for writes of this node's clients, from classes of Paxos, and from where exceptions of its stages end
 * ({@code JVMStabilityInspector}) for all that other nodes send, and for reads. Warnings of MySQL's pool about each connection that
 * is lost go, too: its callers are told. To be loaded only where logback is.
 */
final class RefusalFilter extends TurboFilter {
    private static final String STAGES = JVMStabilityInspector.class.getName();
    private static final String CLIENTS = StorageProxy.class.getName();
    private static final String PAXOS = StorageProxy.class.getPackageName() + ".paxos.";

    /** Of the library that the store of MySQL has its pools from. */
    private static final Set<String> CONNECTIONS =
            Set.of("com.zaxxer.hikari.pool.ProxyConnection", "com.zaxxer.hikari.pool.PoolBase");

    /** Causes beyond are not looked at. */
    private static final int MAX_CAUSES = 8;

    private RefusalFilter() {}

    /** Puts one into the log of this process, unless there is one. It stays there when the configuration is read again. */
    static void install() {
        install((LoggerContext) LoggerFactory.getILoggerFactory());
    }

    static synchronized void install(LoggerContext log) {
        if (log.getTurboFilterList().stream().anyMatch(RefusalFilter.class::isInstance)) {
            return;
        }
        RefusalFilter filter = new RefusalFilter();
        filter.setContext(log);
        filter.start();
        log.addTurboFilter(filter);
        log.addListener(new Again(filter));
    }

    @Override
    public FilterReply decide(
            Marker marker, Logger logger, Level level, String format, Object[] parameters, Throwable thrown) {
        boolean isDropped = level == Level.WARN && CONNECTIONS.contains(logger.getName())
                || isRefusal(thrown != null ? thrown : last(parameters)) && isOfRequests(logger.getName());
        return isDropped ? FilterReply.DENY : FilterReply.NEUTRAL;
    }

    /** Where a message has parameters, an exception is the last of them. */
    private static Throwable last(Object[] parameters) {
        return parameters != null && parameters.length > 0 && parameters[parameters.length - 1] instanceof Throwable thrown
                ? thrown
                : null;
    }

    private static boolean isRefusal(Throwable thrown) {
        Throwable cause = thrown;
        for (int depth = 0; cause != null && depth < MAX_CAUSES; depth++) {
            if (cause instanceof ServerAwayException) {
                return true;
            }
            cause = cause.getCause();
        }
        return false;
    }

    private static boolean isOfRequests(String logger) {
        return logger.equals(STAGES) || logger.equals(CLIENTS) || logger.startsWith(PAXOS);
    }

    /** Logback takes all filters away before it reads its configuration again, and then calls this. */
    private record Again(RefusalFilter filter) implements LoggerContextListener {
        @Override
        public boolean isResetResistant() {
            return true;
        }

        @Override
        public void onReset(LoggerContext log) {
            log.addTurboFilter(filter);
        }

        @Override
        public void onStart(LoggerContext log) {}

        @Override
        public void onStop(LoggerContext log) {}

        @Override
        public void onLevelChange(Logger logger, Level level) {}
    }
}
