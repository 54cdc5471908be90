import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import javax.management.InstanceNotFoundException;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/**
 * Prints once a second, for each node of a cluster, what it has done as a replica for a keyspace since it began: how many reads and
 * writes, and how long all of them took together. That is Cassandra's own count, without queues, commit log and network.
 */
final class Replicas {
    private static final long PERIOD_MS = 1000;
    private static final String HEAD = "at_ms,node,reads,read_us,writes,write_us";

    /** In the order of {@link #HEAD}. */
    private static final List<String> COUNTERS =
            List.of("ReadLatency", "ReadTotalLatency", "WriteLatency", "WriteTotalLatency");

    private Replicas() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments.length < 2) {
            System.err.println("usage: Replicas KEYSPACE JMX_PORT...");
            System.exit(2);
        }
        List<MBeanServerConnection> nodes = new ArrayList<>();
        for (int position = 1; position < arguments.length; position++) {
            nodes.add(connect(arguments[position]));
        }
        System.out.println(HEAD);
        try {
            while (true) {
                for (int node = 1; node <= nodes.size(); node++) {
                    System.out.println(line(node, nodes.get(node - 1), arguments[0]));
                }
                System.out.flush();
                Thread.sleep(PERIOD_MS);
            }
        } catch (IOException | JMException gone) {
            System.err.println("replicas: a node does not answer any more: " + gone);
            System.exit(1);
        }
    }

    private static MBeanServerConnection connect(String port) throws IOException {
        String address = "service:jmx:rmi:///jndi/rmi://127.0.0.1:" + port + "/jmxrmi";
        return JMXConnectorFactory.connect(new JMXServiceURL(address)).getMBeanServerConnection();
    }

    private static String line(int node, MBeanServerConnection beans, String keyspace) throws IOException, JMException {
        StringBuilder line = new StringBuilder();
        for (String counter : COUNTERS) {
            line.append(',').append(count(beans, keyspace, counter));
        }
        return System.currentTimeMillis() + "," + node + line;
    }

    /** Of a keyspace that is not there yet nothing was counted. */
    private static long count(MBeanServerConnection beans, String keyspace, String counter) throws IOException, JMException {
        String bean = "org.apache.cassandra.metrics:type=Keyspace,keyspace=" + keyspace + ",name=" + counter;
        try {
            return (Long) beans.getAttribute(new ObjectName(bean), "Count");
        } catch (InstanceNotFoundException missing) {
            return 0;
        }
    }
}
