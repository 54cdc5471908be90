package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;

/**
 * Replicas of one table on aiodb, RocksDB and LMDB side by side: each node's own configuration says which. Others by
 * {@code -Daiodb.mixed=aiodb,mysql,redis}.
 */
@Tag("slow")
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
final class MixedStoresTest {
    private static final int NETWORK = 95;
    private static final String KEYSPACE = "mixed";
    private static final List<String> STORES =
            List.of(System.getProperty("aiodb.mixed", "aiodb,rocksdb,lmdb").split(","));
    private static final int ROWS = 300;

    /** Of Cassandra, over all tables of a node. */
    private static final String REPAIRED = "org.apache.cassandra.metrics:type=ReadRepair,name=RepairedBlocking";

    private static final Ledger LEDGER = new Ledger();

    private static Nodes nodes;

    @BeforeAll
    static void create() throws InterruptedException {
        nodes = new Nodes(NETWORK, STORES.size());
        for (int node = 1; node <= STORES.size(); node++) {
            nodes.stop(node);
            nodes.map(node, STORES.get(node - 1));
            nodes.start(node);
        }
        try (CqlSession session = nodes.session(1)) {
            session.execute("CREATE KEYSPACE " + KEYSPACE
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
            session.execute("CREATE TABLE " + KEYSPACE
                    + ".rows (id int, c int, v text, PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
        }
        new Members(nodes, STORES.size()).awaitSchema();
    }

    @AfterAll
    static void destroy() {
        nodes.close();
    }

    /** Cassandra compares digests of what the replicas answer; if they differed it would repair them. */
    @Order(1)
    @Test
    void allReplicasGiveTheSameAnswers() throws InterruptedException {
        try (CqlSession session = nodes.session(1, KEYSPACE)) {
            session.execute("CREATE TABLE kinds (id int, c int, s text static, v text, m map<int, text>, "
                    + "PRIMARY KEY (id, c)) WITH memtable = 'aiodb'");
            new Members(nodes, STORES.size()).awaitSchema();
            for (int i = 0; i < ROWS; i++) {
                int id = i % 10;
                atAll(session, "INSERT INTO kinds (id, c, v) VALUES (" + id + ", " + i + ", 'v" + i + "')");
                atAll(session, "UPDATE kinds SET s = 's" + i + "', m[" + i + "] = 'm' WHERE id = " + id + " AND c = " + i / 2);
                atAll(session, "DELETE FROM kinds WHERE id = " + id + " AND c >= " + i / 3 + " AND c < " + i / 2);
                atAll(session, "DELETE v FROM kinds WHERE id = " + id + " AND c = " + (i - 10));
            }
            atAll(session, "DELETE FROM kinds WHERE id = 7");
            for (int id = 0; id < 10; id++) {
                atAll(session, "SELECT * FROM kinds WHERE id = " + id);
                atAll(session, "SELECT * FROM kinds WHERE id = " + id + " AND c > 20 AND c < 200 ORDER BY c DESC");
            }
            atAll(session, "SELECT * FROM kinds");
        }
        for (int node = 1; node <= STORES.size(); node++) {
            try (Management management = nodes.management(node)) {
                assertEquals(0, management.count(REPAIRED), "reads of node " + node + " that were repaired");
            }
        }
    }

    private static void atAll(CqlSession session, String statement) {
        session.execute(SimpleStatement.newInstance(statement)
                .setConsistencyLevel(ConsistencyLevel.ALL));
    }

    /** Each is killed under load. What it has missed then comes back by repair, and each has all rows by itself. */
    @Order(2)
    @Test
    void eachReplicaHasAllRowsAfterItsKill() throws InterruptedException {
        for (int node = 1; node <= STORES.size(); node++) {
            try (CqlSession session = nodes.session(node % STORES.size() + 1, KEYSPACE);
                    Writers writers = new Writers(session, "rows", LEDGER, ConsistencyLevel.QUORUM)) {
                writers.await(ROWS);
                nodes.kill(node);
                writers.await(ROWS);
                nodes.start(node);
                writers.await(ROWS);
            }
        }
        nodes.nodetool(1, "repair", "--full", KEYSPACE);
        Members members = new Members(nodes, STORES.size());
        for (int node = 1; node <= STORES.size(); node++) {
            LEDGER.check(members.alone(node, KEYSPACE), "a repair, on the node with " + STORES.get(node - 1));
        }
    }
}
