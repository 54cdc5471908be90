package io.aiodb.cassandra.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** The node that is measured, which runs on this machine. */
final class Server implements AutoCloseable {
    /** A node that takes less of a core than this does nothing but wait. */
    private static final double IDLE_CORES = 0.05;

    private static final int LOOK_MS = 1000;
    private static final int MAX_LOOKS = 600;

    private final JMXConnector connector;
    private final MBeanServerConnection beans;
    private final Path process;
    private final Disk disk;

    Server(int port) throws IOException {
        connector = JMXConnectorFactory.connect(
                new JMXServiceURL("service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi"));
        beans = connector.getMBeanServerConnection();
        process = Path.of("/proc", String.valueOf(attribute("java.lang:type=Runtime", "Pid")));
        String[] directories =
                (String[]) attribute("org.apache.cassandra.db:type=StorageService", "AllDataFileLocations");
        disk = Disk.under(Path.of(directories[0]));
    }

    /**
     * What the node has used and done since its start.
     *
     * @param writtenBytes to its disk, by the whole machine, with what waited in the page cache
     * @param compactions of SSTables that are over
     */
    record Counts(double cpuSeconds, long writtenBytes, long compactions) {}

    Counts counts() throws InterruptedException {
        Object compactions = attribute("org.apache.cassandra.metrics:type=Compaction,name=CompletedTasks", "Value");
        return new Counts(cpuSeconds(), disk.settledWrittenBytes(), ((Number) compactions).longValue());
    }

    /** Bytes that devices have read for the node since its start. */
    long readBytes() {
        return number(process.resolve("io"), "read_bytes");
    }

    private double cpuSeconds() {
        return (long) attribute("java.lang:type=OperatingSystem", "ProcessCpuTime") / 1e9;
    }

    /** Memory of the node's own: without pages of files, which the system can take back. */
    long residentBytes() {
        return number(process.resolve("status"), "RssAnon") << 10;
    }

    /** Bytes of a table's SSTables, as {@code keyspace.table}. */
    long dataBytes(String table) {
        String[] names = table.split("\\.");
        return ((Number) attribute(
                        "org.apache.cassandra.metrics:type=Table,keyspace=" + names[0] + ",scope=" + names[1]
                                + ",name=LiveDiskSpaceUsed",
                        "Count"))
                .longValue();
    }

    private static long number(Path file, String name) {
        try {
            return Files.readAllLines(file).stream()
                    .filter(line -> line.startsWith(name + ":"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")))
                    .findFirst()
                    .orElseThrow();
        } catch (IOException failure) {
            throw new IllegalStateException("cannot read " + file + ": run it as the node's user", failure);
        }
    }

    /** Waits until what the node does in the background is done. */
    void awaitIdle() throws InterruptedException {
        double before = cpuSeconds();
        for (int look = 0; look < MAX_LOOKS; look++) {
            Thread.sleep(LOOK_MS);
            double now = cpuSeconds();
            Object pending = attribute("org.apache.cassandra.metrics:type=Compaction,name=PendingTasks", "Value");
            if (now - before < IDLE_CORES * LOOK_MS / 1e3 && ((Number) pending).intValue() == 0) {
                return;
            }
            before = now;
        }
        throw new IllegalStateException("the node was still busy after " + MAX_LOOKS + " looks");
    }

    /** Writes the memtables of a keyspace to SSTables where they are such. */
    void flush(String keyspace) {
        try {
            beans.invoke(
                    new ObjectName("org.apache.cassandra.db:type=StorageService"),
                    "forceKeyspaceFlush",
                    new Object[] {keyspace, new String[0]},
                    new String[] {String.class.getName(), String[].class.getName()});
        } catch (JMException | IOException failure) {
            throw new IllegalStateException("cannot flush " + keyspace, failure);
        }
    }

    private Object attribute(String bean, String name) {
        try {
            return beans.getAttribute(new ObjectName(bean), name);
        } catch (JMException | IOException failure) {
            throw new IllegalStateException(bean + "." + name + " cannot be read", failure);
        }
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
