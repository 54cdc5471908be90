package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A table goes over to aiodb node by node, under load, and back. */
@Tag("slow")
final class RollOverTest {
    private static final int NETWORK = 93;
    private static final String KEYSPACE = "rolled";
    private static final int MEMBERS = 3;
    private static final int ROWS = 500;

    private static final Ledger LEDGER = new Ledger();

    @Test
    void nodeByNodeAndBack() throws InterruptedException {
        try (Nodes nodes = new Nodes(NETWORK, MEMBERS)) {
            for (int node = 1; node <= MEMBERS; node++) {
                remap(nodes, node, "trie");
            }
            try (CqlSession session = nodes.session(1)) {
                session.execute("CREATE KEYSPACE " + KEYSPACE
                        + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
                session.execute("CREATE TABLE " + KEYSPACE
                        + ".rows (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
            }
            // A node that does not know the table yet refuses its rows.
            new Members(nodes, MEMBERS).awaitSchema();
            write(nodes, 1, () -> {});
            for (int node = 1; node <= MEMBERS; node++) {
                int changing = node;
                write(nodes, node % MEMBERS + 1, () -> remap(nodes, changing, "aiodb"));
                check(nodes, "node " + node + " went over");
            }
            write(nodes, 1, () -> alter(nodes, "trie"));
            check(nodes, "the table went back");
            for (int node = 1; node <= MEMBERS; node++) {
                nodes.restart(node);
                Path data = nodes.directory(node).resolve("data").resolve(KEYSPACE);
                assertNotEquals(0, ClusterTest.files(data, "-Data.db").size(), "SSTables of node " + node);
            }
            check(nodes, "the table went back and all nodes were killed");
        }
    }

    private static void remap(Nodes nodes, int node, String memtable) {
        nodes.stop(node);
        nodes.map(node, memtable);
        nodes.start(node);
    }

    private static void alter(Nodes nodes, String memtable) {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            session.execute("ALTER TABLE rows WITH memtable = '" + memtable + "'");
        }
    }

    private static void write(Nodes nodes, int node, Runnable change) throws InterruptedException {
        try (CqlSession session = nodes.session(node, KEYSPACE);
                Writers writers = new Writers(session, "rows", LEDGER, ConsistencyLevel.QUORUM)) {
            change.run();
            writers.await(ROWS);
        }
    }

    private static void check(Nodes nodes, String when) {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            LEDGER.check(Writers.read(session, "rows", ConsistencyLevel.QUORUM), when);
        }
    }
}
