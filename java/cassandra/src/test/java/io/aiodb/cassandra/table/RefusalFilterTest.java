package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.aiodb.store.StoreException;
import java.sql.SQLException;
import java.util.List;
import org.apache.cassandra.db.compaction.CompactionManager;
import org.apache.cassandra.service.StorageProxy;
import org.apache.cassandra.service.paxos.Paxos;
import org.apache.cassandra.utils.JVMStabilityInspector;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RefusalFilterTest {
    private static final Exception REFUSAL = new ServerAwayException("the server does not answer");
    private static final Exception WRAPPED = new RuntimeException(new RuntimeException(REFUSAL));

    private final LoggerContext context = new LoggerContext();
    private final Logger stages = context.getLogger(JVMStabilityInspector.class);
    private final Logger clients = context.getLogger(StorageProxy.class);
    private ListAppender<ILoggingEvent> log;

    @BeforeEach
    void install() {
        RefusalFilter.install(context);
        configure();
    }

    private void configure() {
        log = new ListAppender<>();
        log.start();
        context.getLogger(Logger.ROOT_LOGGER_NAME).addAppender(log);
    }

    private List<String> said() {
        List<String> said = log.list.stream().map(ILoggingEvent::getMessage).toList();
        log.list.clear();
        return said;
    }

    @Test
    void refusalsOfRequestsAreDropped() {
        stages.error("Exception in thread {}", Thread.currentThread(), REFUSAL);
        stages.error("Exception in thread {}", Thread.currentThread(), WRAPPED);
        clients.error("Failed to apply mutation locally : ", REFUSAL);
        context.getLogger(Paxos.class.getPackageName() + ".PaxosCommit").error("Failed to apply {} locally", "commit", WRAPPED);
        assertEquals(List.of(), said());
    }

    @Test
    void warningsOfEachLostConnectionAreDropped() {
        Logger pool = context.getLogger("com.zaxxer.hikari.pool.ProxyConnection");
        pool.warn("{} - Connection {} marked as broken", "aiodb-mysql-reads", 1, new SQLException("Socket error"));
        assertEquals(List.of(), said());
        pool.error("worse");
        context.getLogger("com.zaxxer.hikari.pool.HikariPool").warn("Thread starvation or clock leap detected");
        assertEquals(List.of("worse", "Thread starvation or clock leap detected"), said());
    }

    @Test
    void allElseIsLogged() {
        stages.error("another {}", Thread.currentThread(), new RuntimeException(new StoreException.Full("no space")));
        stages.error("none");
        stages.error("a parameter {}", REFUSAL.getMessage());
        context.getLogger(CompactionManager.class).error("a task", REFUSAL);
        context.getLogger(ServerOutage.class).error("ours", REFUSAL);
        assertEquals(List.of("another {}", "none", "a parameter {}", "a task", "ours"), said());
    }

    @Test
    void itStaysWhenTheConfigurationIsReadAgain() {
        context.reset();
        configure();
        clients.error("Failed to apply mutation locally : ", REFUSAL);
        assertEquals(List.of(), said());
        RefusalFilter.install(context);
        assertEquals(1, context.getTurboFilterList().size());
    }
}
