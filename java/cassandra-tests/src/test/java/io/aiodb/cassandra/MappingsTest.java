package io.aiodb.cassandra;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What the name of a table's memtable means on a node changes, with a kill each time: the rows come along. */
@ExtendWith(SharedNode.class)
@Tag("long")
final class MappingsTest {
    private static final int ROWS = 300;

    /** From store to store, to memtables of Cassandra and back. */
    private static final List<String> MAPPINGS = List.of(
            "rocksdb", "trie", "lmdb", "aiodb", "mysql", "skiplist", "redis", "mysql", "aiodb");

    @Test
    void rowsComeAlong(Nodes nodes) throws InterruptedException {
        Ledger ledger = new Ledger();
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE mapped WITH replication = "
                    + "{'class': 'SimpleStrategy', 'replication_factor': 1}");
            session.execute("CREATE TABLE mapped.rows (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
        }
        write(nodes, ledger);
        for (String mapping : MAPPINGS) {
            nodes.kill(1);
            nodes.map(1, mapping);
            nodes.start(1);
            check(nodes, ledger, mapping);
            write(nodes, ledger);
            check(nodes, ledger, mapping + ", and rows were added");
        }
    }

    private static void write(Nodes nodes, Ledger ledger) throws InterruptedException {
        try (CqlSession session = nodes.session(1, "mapped");
                Writers writers = new Writers(session, "rows", ledger)) {
            writers.await(ROWS);
        }
        // As far as stock's own log promises.
        Thread.sleep(1000);
    }

    private static void check(Nodes nodes, Ledger ledger, String mapping) {
        try (CqlSession session = nodes.session(1, "mapped")) {
            ledger.check(Writers.read(session, "rows", ConsistencyLevel.ONE), "the node was mapped to " + mapping);
        }
    }
}
