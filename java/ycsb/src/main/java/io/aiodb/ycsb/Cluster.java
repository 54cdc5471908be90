package io.aiodb.ycsb;

import com.datastax.oss.driver.api.core.ConsistencyLevel;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.metadata.Node;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/** The session of all threads of a run, its keyspace, and how requests go to the nodes. */
final class Cluster implements AutoCloseable {
    private static final String HOSTS = "hosts";
    private static final String PORT = "port";
    private static final String KEYSPACE = "cassandra.keyspace";
    private static final String DATACENTER = "cassandra.datacenter";
    private static final String REPLICATION = "cassandra.replication";
    private static final String TABLE_OPTIONS = "cassandra.table_options";
    private static final String TRUNCATE = "cassandra.truncate";
    private static final String ENTRY = "cassandra.entry";
    private static final String READ_LEVEL = "cassandra.readconsistencylevel";
    private static final String WRITE_LEVEL = "cassandra.writeconsistencylevel";
    private static final String USER = "cassandra.username";
    private static final String PASSWORD = "cassandra.password";
    private static final String CONNECTIONS = "cassandra.coreconnections";
    private static final String TIMEOUT = "cassandra.readtimeoutmillis";

    /** Which node a request goes to first. */
    private enum Entry {
        /** One that has a replica. */
        TOKEN,
        /** Each in turn. */
        SPREAD,
        /** The first of the hosts. */
        ONE
    }

    private final CqlSession session;
    private final ConsistencyLevel readLevel;
    private final ConsistencyLevel writeLevel;
    private final String tableOptions;
    private final boolean truncate;
    /** The node that all requests go through, or null. */
    private final Node entry;
    private final Map<String, PreparedStatement> prepared = new ConcurrentHashMap<>();

    private Cluster(
            CqlSession session,
            ConsistencyLevel readLevel,
            ConsistencyLevel writeLevel,
            String tableOptions,
            boolean truncate,
            Node entry) {
        this.session = session;
        this.readLevel = readLevel;
        this.writeLevel = writeLevel;
        this.tableOptions = tableOptions;
        this.truncate = truncate;
        this.entry = entry;
    }

    /** Connects, and makes the keyspace if it is missing. */
    static Cluster connect(Properties properties) {
        List<InetSocketAddress> hosts = hosts(properties);
        String datacenter = properties.getProperty(DATACENTER, "datacenter1");
        Entry entry = choice(properties, ENTRY, Entry.TOKEN);
        ConsistencyLevel readLevel = level(properties, READ_LEVEL);
        ConsistencyLevel writeLevel = level(properties, WRITE_LEVEL);
        String keyspace = properties.getProperty(KEYSPACE, "ycsb");
        CqlSessionBuilder builder = CqlSession.builder()
                .addContactPoints(hosts)
                .withLocalDatacenter(datacenter)
                .withConfigLoader(configuration(properties, entry));
        if (properties.getProperty(USER) != null) {
            builder.withAuthCredentials(properties.getProperty(USER), properties.getProperty(PASSWORD, ""));
        }
        CqlSession session = builder.build();
        try {
            session.execute("CREATE KEYSPACE IF NOT EXISTS \"" + keyspace + "\" WITH replication = "
                    + "{'class': 'NetworkTopologyStrategy', '" + datacenter + "': "
                    + Integer.parseInt(properties.getProperty(REPLICATION, "1")) + "}");
            session.execute("USE \"" + keyspace + "\"");
            Node node = entry == Entry.ONE ? node(session, hosts.get(0)) : null;
            boolean truncate = Boolean.parseBoolean(properties.getProperty(TRUNCATE, "false"));
            String tableOptions = properties.getProperty(TABLE_OPTIONS, "");
            return new Cluster(session, readLevel, writeLevel, tableOptions, truncate, node);
        } catch (RuntimeException failure) {
            session.close();
            throw failure;
        }
    }

    private static List<InetSocketAddress> hosts(Properties properties) {
        int port = Integer.parseInt(properties.getProperty(PORT, "9042"));
        return Arrays.stream(properties.getProperty(HOSTS, "127.0.0.1").split(","))
                .map(host -> new InetSocketAddress(host.strip(), port))
                .toList();
    }

    private static DriverConfigLoader configuration(Properties properties, Entry entry) {
        ProgrammaticDriverConfigLoaderBuilder builder = DriverConfigLoader.programmaticBuilder()
                .withDuration(
                        DefaultDriverOption.REQUEST_TIMEOUT,
                        Duration.ofMillis(Long.parseLong(properties.getProperty(TIMEOUT, "12000"))))
                .withInt(
                        DefaultDriverOption.CONNECTION_POOL_LOCAL_SIZE,
                        Integer.parseInt(properties.getProperty(CONNECTIONS, "1")))
                .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 0)
                .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 0)
                // Making the table may take a while on a loaded machine.
                .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, Duration.ofSeconds(60))
                .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(30));
        if (entry != Entry.TOKEN) {
            builder.withClass(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, AnyNode.class);
        }
        return builder.build();
    }

    private static Node node(CqlSession session, InetSocketAddress host) {
        return session.getMetadata().getNodes().values().stream()
                .filter(node -> node.getEndPoint().resolve().equals(host))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("the cluster knows no node " + host));
    }

    private static ConsistencyLevel level(Properties properties, String name) {
        return choice(properties, name, DefaultConsistencyLevel.QUORUM);
    }

    private static <E extends Enum<E>> E choice(Properties properties, String name, E fallback) {
        String given = properties.getProperty(name);
        E[] constants = fallback.getDeclaringClass().getEnumConstants();
        if (given == null) {
            return fallback;
        }
        return Arrays.stream(constants)
                .filter(constant -> constant.name().equalsIgnoreCase(given))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(name + " = " + given + ": give one of "
                        + Arrays.stream(constants).map(Enum::name).collect(Collectors.joining(", "))));
    }

    /** Makes a table with a text key and these fields, if it is missing; empties one that is there, where that is asked for. */
    void makeTable(String table, List<String> fields) {
        String columns = fields.stream().map(field -> quoted(field) + " blob").collect(Collectors.joining(", "));
        session.execute("CREATE TABLE IF NOT EXISTS " + quoted(table) + " (" + CqlClient.KEY + " text PRIMARY KEY, " + columns
                + ")" + (tableOptions.isEmpty() ? "" : " WITH " + tableOptions));
        if (truncate) {
            session.execute("TRUNCATE " + quoted(table));
        }
    }

    /** Gives a table another memtable. */
    void alterMemtable(String table, String memtable) {
        session.execute("ALTER TABLE " + quoted(table) + " WITH memtable = '" + memtable + "'");
    }

    /** Runs a read. */
    ResultSet read(String statement, Object... values) {
        return session.execute(bind(statement, readLevel, values));
    }

    /** Runs a write. */
    void write(String statement, Object... values) {
        session.execute(bind(statement, writeLevel, values));
    }

    private BoundStatement bind(String statement, ConsistencyLevel level, Object... values) {
        BoundStatement bound =
                prepared.computeIfAbsent(statement, session::prepare).bind(values).setConsistencyLevel(level);
        return entry == null ? bound : bound.setNode(entry);
    }

    /** A name as CQL takes it whatever its letters are. */
    static String quoted(String name) {
        return "\"" + name.replace("\"", "\"\"") + "\"";
    }

    @Override
    public void close() {
        session.close();
    }
}
