package io.aiodb.cassandra;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;

/** What single members of a cluster have, all of which run. */
final class Members {
    private static final int WAIT_SECONDS = 600;

    private final Nodes nodes;
    private final int count;

    Members(Nodes nodes, int count) {
        this.nodes = nodes;
        this.count = count;
    }

    /** The rows of the table {@code rows} that a node answers when it sees no other. */
    BitSet alone(int node, String keyspace) throws InterruptedException {
        List<Integer> others = IntStream.rangeClosed(1, count)
                .filter(other -> other != node)
                .boxed()
                .toList();
        for (int other : others) {
            gossip(other, false);
        }
        awaitLive(node, 1);
        try (CqlSession session = nodes.session(node, keyspace)) {
            return Writers.read(session, "rows", ConsistencyLevel.ONE);
        } finally {
            for (int other : others) {
                gossip(other, true);
            }
            for (int each = 1; each <= count; each++) {
                awaitLive(each, count);
            }
        }
    }

    /** Waits until all nodes have the same schema; a session that talks to one node only does not. */
    void awaitSchema() throws InterruptedException {
        for (int waited = 0; schemas() != 1; waited++) {
            assertTrue(waited < WAIT_SECONDS, "the nodes do not agree on a schema");
            Thread.sleep(1000);
        }
    }

    private long schemas() {
        return IntStream.rangeClosed(1, count)
                .mapToObj(node -> {
                    try (CqlSession session = nodes.session(node)) {
                        return session.execute("SELECT schema_version FROM system.local").one().getUuid(0);
                    }
                })
                .distinct()
                .count();
    }

    private void gossip(int node, boolean enabled) {
        try (Management management = nodes.management(node)) {
            management.gossip(enabled);
        }
    }

    /** Waits until a node sees that many nodes up, itself among them. */
    void awaitLive(int node, int wanted) throws InterruptedException {
        try (Management management = nodes.management(node)) {
            for (int waited = 0; management.liveNodes() != wanted; waited++) {
                assertTrue(waited < WAIT_SECONDS, () -> "node " + node + " does not see " + wanted + " nodes");
                Thread.sleep(1000);
            }
        }
    }
}
