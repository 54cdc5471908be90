package io.aiodb.cassandra;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.loadbalancing.NodeDistance;
import com.datastax.oss.driver.api.core.metadata.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** A cluster of real nodes, each a process of its own, which {@code scripts/cluster.sh} starts and ends. */
final class Nodes implements AutoCloseable {
    /** Where the project lies. */
    static final Path REPOSITORY =
            Path.of(System.getProperty("aiodb.repository")).toAbsolutePath().normalize();
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(60);

    /** A machine with other work may take longer than nodes of users should wait. That of the transport bounds all others. */
    private static final String TIMEOUTS = """
            read_request_timeout: 60s
            range_request_timeout: 60s
            write_request_timeout: 60s
            counter_write_request_timeout: 60s
            truncate_request_timeout: 60s
            native_transport_timeout: 60s
            """;

    private static final int CQL_PORT = 9042;

    private static final String START_SECONDS = "1200";
    private static final String ACCESS = System.getProperty("aiodb.access", "jdbc");

    private final int network;
    private final String settings;

    /** Of the launcher, beside what it always has. */
    private final Map<String, String> environment;

    private final Path directory;

    /**
     * Makes and starts a cluster.
     *
     * @param network its addresses are 127.0.network.1 and so on; clusters of different tests must differ
     */
    Nodes(int network, int count) {
        this(network, count, "");
    }

    /** The same with further lines of {@code cassandra.yaml}, in which DIRECTORY stands for that of each node. */
    Nodes(int network, int count, String settings) {
        this(network, count, settings, Map.of());
    }

    /** The same with more in the environment of the launcher. */
    Nodes(int network, int count, String settings, Map<String, String> environment) {
        this.network = network;
        this.settings = TIMEOUTS + settings;
        this.environment = environment;
        this.directory = REPOSITORY.resolve("build/cassandra-tests-" + network);
        requirePlugin();
        launcher("destroy");
        launcher("create", Integer.toString(count));
    }

    /** Without it, nodes would start and not know the memtable: each test would fail for another reason than the first. */
    private static void requirePlugin() {
        Path plugin = REPOSITORY.resolve("java/cassandra/target/aiodb-cassandra-0.1.0.jar");
        if (!Files.exists(plugin)) {
            throw new IllegalStateException("there is no " + plugin + ": build it with `make java`, and see above why its module failed");
        }
    }

    void start(int node) {
        launcher("start", Integer.toString(node));
    }

    /** Ends a node's process with SIGTERM: it flushes what a shutdown flushes. */
    void stop(int node) {
        launcher("stop", Integer.toString(node));
    }

    /** Ends a node's process with SIGKILL. */
    void kill(int node) {
        launcher("kill", Integer.toString(node));
    }

    void restart(int node) {
        kill(node);
        start(node);
    }

    /** Starts one more node, with the next number. */
    void add() {
        launcher("add");
    }

    /** Starts a node with the next number in the place of a dead one. */
    void replace(int node) {
        launcher("replace", Integer.toString(node));
    }

    /** A node hands its data to the others and is deleted. */
    void remove(int node) {
        launcher("remove", Integer.toString(node));
    }

    /** What the node's memtable {@code aiodb} is from its next start. {@code -Daiodb.access} says how MySQL is read then. */
    void map(int node, String memtable) {
        launcher(Map.of("ACCESS", ACCESS), "map", Integer.toString(node), memtable);
    }

    /** The same with further parameters of this node's memtable, a line each. */
    void map(int node, String memtable, String parameters) {
        launcher(Map.of("PARAMETERS", parameters), "map", Integer.toString(node), memtable);
    }

    /** Ends the database server of a node with SIGKILL. The node runs on. */
    void killServer(int node) {
        launcher("kill-server", Integer.toString(node));
    }

    void startServer(int node) {
        launcher("start-server", Integer.toString(node));
    }

    String nodetool(int node, String... arguments) {
        List<String> command = new ArrayList<>(List.of("nodetool", Integer.toString(node)));
        command.addAll(List.of(arguments));
        return launcher(command.toArray(String[]::new));
    }

    /** The address of a node, for CQL on port 9042. */
    String address(int node) {
        return "127.0." + network + "." + node;
    }

    /** Whether a node takes connections of clients. */
    boolean listens(int node) {
        try (Socket socket = new Socket(address(node), CQL_PORT)) {
            return socket.isConnected();
        } catch (IOException refused) {
            return false;
        }
    }

    /** The lines that a node has logged. */
    Stream<String> log(int node) {
        try {
            return Files.readAllLines(directory(node).resolve("system.log")).stream();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Where a node keeps its data, its commit log and its log. */
    Path directory(int node) {
        return directory.resolve("node" + node);
    }

    /** Memory of a node's process that is no file's. */
    long memoryBytes(int node) {
        try {
            String process = Files.readString(directory(node).resolve("pid")).strip();
            return Files.readAllLines(Path.of("/proc", process, "status")).stream()
                    .filter(line -> line.startsWith("RssAnon:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("[^0-9]", "")) << 10)
                    .findFirst()
                    .orElseThrow();
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    Management management(int node) {
        return new Management(7300 + 250 * network + node);
    }

    /** A session that talks to one node only and leaves schemas alone, so that changing them is quick. */
    CqlSession session(int node) {
        return session(node, null);
    }

    CqlSession session(int node, String keyspace) {
        DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, REQUEST_TIMEOUT)
                .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, REQUEST_TIMEOUT)
                .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, REQUEST_TIMEOUT)
                .withDuration(DefaultDriverOption.CONNECTION_SET_KEYSPACE_TIMEOUT, REQUEST_TIMEOUT)
                .withBoolean(DefaultDriverOption.METADATA_SCHEMA_ENABLED, false)
                .withBoolean(DefaultDriverOption.REQUEST_WARN_IF_SET_KEYSPACE, false)
                .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0)
                .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0)
                .build();
        String address = address(node);
        return CqlSession.builder()
                .addContactPoint(new InetSocketAddress(address, CQL_PORT))
                .withLocalDatacenter("datacenter1")
                .withNodeDistanceEvaluator((other, datacenter) -> isAt(other, address)
                        ? null
                        : NodeDistance.IGNORED)
                .withKeyspace(keyspace)
                .withConfigLoader(options)
                .build();
    }

    private static boolean isAt(Node node, String address) {
        return node.getEndPoint().resolve() instanceof InetSocketAddress at
                && at.getAddress().getHostAddress().equals(address);
    }

    @Override
    public void close() {
        launcher("destroy");
    }

    /**
     * Starts a node.
     *
     * @param further of the environment of the launcher
     * @return why the node did not start; null if it did
     */
    String whyNotStarted(int node, Map<String, String> further) {
        try {
            launcher(further, "start", Integer.toString(node));
            return null;
        } catch (AssertionError failure) {
            return failure.getMessage();
        }
    }

    private String launcher(String... arguments) {
        return launcher(Map.of(), arguments);
    }

    private String launcher(Map<String, String> further, String... arguments) {
        List<String> command = new ArrayList<>();
        command.add(REPOSITORY.resolve("scripts/cluster.sh").toString());
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("CLUSTER", directory.toString());
        // Nodes that live for a minute only do not repay the second compiler.
        builder.environment().put("JVM_OPTIONS", "-XX:TieredStopAtLevel=1");
        builder.environment().put("START_SECONDS", START_SECONDS);
        builder.environment().put("NETWORK", Integer.toString(network));
        builder.environment().put("SETTINGS", settings);
        builder.environment().putAll(environment);
        builder.environment().putAll(further);
        try {
            Process process = builder.start();
            String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new AssertionError(String.join(" ", command) + " failed: " + said);
            }
            return said;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } catch (InterruptedException interruption) {
            throw new AssertionError("interrupted while the launcher ran", interruption);
        }
    }
}
