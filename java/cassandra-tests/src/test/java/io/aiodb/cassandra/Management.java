package io.aiodb.cassandra;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** The commands of nodetool, without the seconds that its virtual machine takes to start. */
final class Management implements AutoCloseable {
    private static final String STORAGE = "org.apache.cassandra.db:type=StorageService";

    private final JMXConnector connector;
    private final MBeanServerConnection beans;

    Management(int port) {
        try {
            connector = JMXConnectorFactory.connect(
                    new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi"));
            beans = connector.getMBeanServerConnection();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    void flush(String keyspace) {
        invoke(
                "forceKeyspaceFlush",
                new Object[] {keyspace, new String[0]},
                new String[] {String.class.getName(), String[].class.getName()});
    }

    /** Whether the other nodes see this one. */
    void gossip(boolean enabled) {
        invoke(enabled ? "startGossiping" : "stopGossiping", new Object[0], new String[0]);
    }

    /** How many nodes this one sees, with itself. */
    int liveNodes() {
        return ((List<?>) attribute(STORAGE, "LiveNodes")).size();
    }

    void compact(String keyspace) {
        invoke(
                "forceKeyspaceCompaction",
                new Object[] {false, keyspace, new String[0]},
                new String[] {boolean.class.getName(), String.class.getName(), String[].class.getName()});
    }

    /** Has the node give up what nothing refers to; it is called twice since what is freed natively waits for the first time. */
    void collectGarbage() throws InterruptedException {
        for (int time = 0; time < 2; time++) {
            invoke("java.lang:type=Memory", "gc", new Object[0], new String[0]);
            Thread.sleep(1000);
        }
    }

    /** The value of a counter of Cassandra; counters that were never needed are not there. */
    long count(String bean) {
        return names(bean).isEmpty() ? 0 : (Long) attribute(bean, "Count");
    }

    Object attribute(String bean, String attribute) {
        try {
            return beans.getAttribute(new ObjectName(bean), attribute);
        } catch (JMException | IOException failure) {
            throw new AssertionError(bean + "." + attribute + " cannot be read", failure);
        }
    }

    void set(String bean, String attribute, Object value) {
        try {
            beans.setAttribute(new ObjectName(bean), new Attribute(attribute, value));
        } catch (JMException | IOException failure) {
            throw new AssertionError(bean + "." + attribute + " cannot be set", failure);
        }
    }

    Set<ObjectName> names(String pattern) {
        try {
            return beans.queryNames(new ObjectName(pattern), null);
        } catch (JMException | IOException failure) {
            throw new AssertionError(pattern + " cannot be listed", failure);
        }
    }

    private void invoke(String operation, Object[] arguments, String[] types) {
        invoke(STORAGE, operation, arguments, types);
    }

    private void invoke(String bean, String operation, Object[] arguments, String[] types) {
        try {
            beans.invoke(new ObjectName(bean), operation, arguments, types);
        } catch (JMException | IOException failure) {
            throw new AssertionError(operation + " failed", failure);
        }
    }

    @Override
    public void close() {
        try {
            connector.close();
        } catch (IOException ended) {
            // The node was killed: there is nothing to close on its side.
        }
    }
}
