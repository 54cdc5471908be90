package io.aiodb.cassandra;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Gives test classes one node, which is started for the first of them and ended after the last. */
final class SharedNode implements ParameterResolver {
    private static final int NETWORK = Integer.getInteger("aiodb.network", 91);

    /** Tells JUnit to end the node. */
    private record Held(Nodes nodes) implements AutoCloseable {
        @Override
        public void close() {
            nodes.close();
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Nodes.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return context.getRoot()
                .getStore(ExtensionContext.Namespace.GLOBAL)
                .getOrComputeIfAbsent("node", key -> new Held(new Nodes(NETWORK, 1)), Held.class)
                .nodes();
    }
}
