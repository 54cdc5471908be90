package io.aiodb.ycsb;

import com.datastax.oss.driver.api.core.context.DriverContext;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.session.Request;
import com.datastax.oss.driver.api.core.session.Session;
import com.datastax.oss.driver.internal.core.loadbalancing.BasicLoadBalancingPolicy;
import java.util.Set;

/** Sends each request to the next node, whether it has a replica or not: clients that know nothing of the ring. */
public final class AnyNode extends BasicLoadBalancingPolicy {
    /** Called by the driver, by this class's name. */
    public AnyNode(DriverContext context, String profile) {
        super(context, profile);
    }

    @Override
    protected Set<Node> getReplicas(Request request, Session session) {
        return Set.of();
    }
}
