package io.aiodb.cassandra;

import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives test classes one node, which is started for the first of them and ended after the last. {@code -Daiodb.store=mysql}
 * puts another store than aiodb behind its memtable, whose single rows are then read as {@code -Daiodb.access} says.
 */
final class SharedNode implements ParameterResolver {
    private static final int NETWORK = Integer.getInteger("aiodb.network", 91);
    private static final String STORE = System.getProperty("aiodb.store", "aiodb");

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
                .getOrComputeIfAbsent("node", key -> new Held(start()), Held.class)
                .nodes();
    }

    private static Nodes start() {
        Nodes nodes = new Nodes(NETWORK, 1);
        if (!STORE.equals("aiodb")) {
            nodes.stop(1);
            nodes.map(1, STORE);
            nodes.start(1);
        }
        return nodes;
    }
}
