package io.aiodb.cassandra.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.read.ListAppender;
import io.aiodb.store.Durability;
import io.aiodb.store.StoreException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;

/** What an operator reads of a server that goes away. The test looks for it by itself; the thread's own looks are too late. */
class ServerOutageTest {
    private static final StoreException.Unavailable REFUSED = new StoreException.Unavailable("Connection refused");

    private final ListAppender<ILoggingEvent> log = new ListAppender<>();
    private final Logger logger = (Logger) LoggerFactory.getLogger(ServerOutage.class);
    private final StoreConfiguration configuration =
            new StoreConfiguration("mysql", Path.of("/stores/mysql"), Durability.INTERVAL, Map.of());
    private boolean answers;
    private boolean isClosed;
    private boolean isOdd;
    private long now;

    private final ServerOutage outage = new ServerOutage(configuration, this::ask, () -> now);

    private void ask() {
        if (Thread.currentThread().getName().equals("aiodb-outage")) {
            throw new StoreException.Closed("only the test looks");
        }
        if (isClosed) {
            throw new StoreException.Closed("the node ends");
        }
        if (isOdd) {
            throw new IllegalStateException("an answer that nobody expects");
        }
        if (!answers) {
            throw REFUSED;
        }
    }

    @BeforeEach
    void read() {
        log.start();
        logger.addAppender(log);
        logger.setLevel(Level.INFO);
    }

    @AfterEach
    void end() {
        outage.close();
        logger.detachAppender(log);
    }

    private List<String> said() {
        List<String> said = log.list.stream().map(ILoggingEvent::getFormattedMessage).toList();
        log.list.clear();
        return said;
    }

    private void assertSays(String... parts) {
        List<String> said = said();
        assertEquals(1, said.size(), said::toString);
        for (String part : parts) {
            assertTrue(said.get(0).contains(part), () -> said.get(0) + " without " + part);
        }
    }

    private void pass(long seconds) {
        now += TimeUnit.SECONDS.toNanos(seconds);
    }

    @Test
    void oneLineWhenItGoesAndOneWhenItIsBack() {
        for (int request = 0; request < 1000; request++) {
            RuntimeException forCassandra = outage.refusedWrite(REFUSED);
            assertEquals(0, forCassandra.getStackTrace().length);
            outage.refusedRead(REFUSED);
        }
        assertSays("The server of the mysql store in /stores/mysql is away: Connection refused.", "nodetool repair");
        pass(7);
        assertTrue(outage.look());
        answers = true;
        assertFalse(outage.look());
        assertSays("is back after 7 s, in which 1000 reads and 1000 writes were refused");
    }

    @Test
    void oneLineAMinuteWithCountsWhileItIsAway() {
        outage.refusedWrite(REFUSED);
        said();
        for (int second = 1; second < 60; second++) {
            pass(1);
            outage.refusedWrite(REFUSED);
            assertTrue(outage.look());
        }
        assertEquals(List.of(), said());
        pass(1);
        assertTrue(outage.look());
        assertSays("is still away, for 60 s now: 0 reads and 60 writes were refused, 60 of them since the last such line");
        pass(59);
        outage.refusedRead(REFUSED);
        outage.look();
        assertEquals(List.of(), said());
        pass(1);
        outage.look();
        assertSays("for 120 s now: 1 reads and 60 writes were refused, 1 of them since");
    }

    @Test
    void aServerThatRefusesWhileItAnswersIsNotBack() {
        outage.refusedWrite(REFUSED);
        said();
        answers = true;
        outage.look();
        said();
        outage.refusedWrite(REFUSED);
        said();
        assertTrue(outage.look(), "a request was refused since");
        outage.refusedWrite(REFUSED);
        assertTrue(outage.look(), "and another one");
        assertEquals(List.of(), said());
    }

    @Test
    void anOddAnswerIsNone() {
        outage.refusedRead(REFUSED);
        said();
        answers = true;
        isOdd = true;
        assertTrue(outage.look(), "no answer that counts");
        isOdd = false;
        assertFalse(outage.look());
        assertSays("is back after");
    }

    @Test
    void aServerThatComesAndGoesIsSaidToBeBackAfterALongerTimeEachTime() {
        answers = true;
        for (int looks : List.of(1, 2, 4, 8, 16, 32, 60, 60)) {
            outage.refusedWrite(REFUSED);
            // That the request was refused is seen by the first look.
            assertTrue(outage.look());
            for (int look = 1; look < looks; look++) {
                assertTrue(outage.look());
            }
            assertFalse(outage.look());
        }
        pass(60);
        outage.refusedWrite(REFUSED);
        assertTrue(outage.look());
        assertFalse(outage.look());
    }

    @Test
    void aNodeThatEndsLooksNoMore() {
        outage.refusedWrite(REFUSED);
        said();
        isClosed = true;
        assertThrows(StoreException.Closed.class, outage::look);
        outage.close();
        outage.refusedWrite(REFUSED);
        assertEquals(List.of(), said());
    }
}
