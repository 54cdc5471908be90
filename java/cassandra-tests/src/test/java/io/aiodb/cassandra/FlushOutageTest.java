package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The server of a store goes away when the rows of a table have left it, and before the store is told so. */
@Tag("long")
final class FlushOutageTest {
    private static final int NETWORK = 86;
    private static final int PORT = 29_086;
    private static final int ROWS = 300;

    /** That the table is being flushed, and that it was. */
    private static final int MARKS = 2;

    private static final int WAIT_SECONDS = 300;
    private static final int LOOKS = 600;
    private static final int LOOK_MS = 500;

    @Test
    void rowsThatWereFlushedDoNotComeBack() throws InterruptedException {
        Map<String, String> environment = Map.of("JVM_OPTIONS", "-XX:TieredStopAtLevel=1 " + Steps.options(PORT));
        try (Nodes nodes = new Nodes(NETWORK, 1, "", environment)) {
            nodes.stop(1);
            nodes.map(1, "redis");
            nodes.start(1);
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE flushed WITH replication = "
                        + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
                session.execute("CREATE TABLE flushed.rows (id int PRIMARY KEY, v text) WITH memtable = 'aiodb'");
                for (int row = 0; row < ROWS; row++) {
                    session.execute("INSERT INTO flushed.rows (id, v) VALUES (" + row + ", 'v')");
                }
                alterWhileTheServerGoes(nodes, session);
                assertEquals(ROWS, count(session));
                session.execute("TRUNCATE flushed.rows");
            }
            nodes.startServer(1);
            awaitLogged(nodes, "is removed now");
            nodes.restart(1);
            try (CqlSession session = nodes.session(1)) {
                assertEquals(0, count(session));
            }
        }
    }

    private static void alterWhileTheServerGoes(Nodes nodes, CqlSession session) throws InterruptedException {
        CountDownLatch gone = new CountDownLatch(1);
        Runnable end = () -> {
            nodes.killServer(1);
            gone.countDown();
        };
        try (Steps steps = new Steps(PORT, Map.of("io.aiodb.cassandra.table.StoredTable", Set.of("mark")), MARKS, end)) {
            session.execute("ALTER TABLE flushed.rows WITH memtable = 'trie'");
            assertTrue(gone.await(WAIT_SECONDS, TimeUnit.SECONDS), () -> "the flush has not ended: " + steps.seen());
            awaitLogged(nodes, "is not removed yet");
        }
    }

    private static void awaitLogged(Nodes nodes, String text) throws InterruptedException {
        for (int look = 0; nodes.log(1).noneMatch(line -> line.contains(text)); look++) {
            assertTrue(look < LOOKS, "the node has not logged: " + text);
            Thread.sleep(LOOK_MS);
        }
    }

    private static int count(CqlSession session) {
        return session.execute("SELECT id FROM flushed.rows").all().size();
    }
}
