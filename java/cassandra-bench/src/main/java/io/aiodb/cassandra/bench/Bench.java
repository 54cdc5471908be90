package io.aiodb.cassandra.bench;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongFunction;

/**
 * Measures memtables of one node in alternating rounds: each round runs each workload on each memtable's own table, in an
 * order that moves on by one from round to round; the first round warms up and is not counted. All tables have rows of the
 * same keys and lengths. Whoever runs it sees to it that nothing else runs, and says how much memory the node may use.
 */
public final class Bench {
    private static final String KEYSPACE = "bench";
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(60);

    /** Memtables that do not write SSTables, so options of those are not for them. */
    private static final Set<String> WITHOUT_SSTABLES = Set.of("null", "aiodb");

    private record Settings(
            String host,
            int jmxPort,
            List<String> memtables,
            String stockOptions,
            long rows,
            int valueBytes,
            int inFlight,
            int seconds,
            int rounds) {
        static Settings parse(Map<String, String> given) {
            Settings settings = new Settings(
                    taken(given, "host", "127.0.0.1"),
                    Integer.parseInt(taken(given, "jmx", "7301")),
                    List.of(taken(given, "memtables", "null,aiodb,skiplist,trie").split(",")),
                    taken(given, "stock-options", ""),
                    Long.parseLong(taken(given, "rows", "1000000")),
                    Integer.parseInt(taken(given, "value-bytes", "1024")),
                    Integer.parseInt(taken(given, "in-flight", "64")),
                    Integer.parseInt(taken(given, "seconds", "20")),
                    Integer.parseInt(taken(given, "rounds", "5")));
            if (settings.rows < 1 || settings.inFlight < 1 || settings.seconds < 1 || settings.rounds < 1) {
                throw new IllegalArgumentException("rows, in-flight, seconds and rounds must be at least 1");
            }
            return settings;
        }

        private static String taken(Map<String, String> given, String name, String fallback) {
            String value = given.remove(name);
            return value == null ? fallback : value;
        }
    }

    /** The statements of one memtable's table. */
    private record Table(String memtable, PreparedStatement get, PreparedStatement put) {}

    private enum Workload {
        GET,
        OVERWRITE,
        INSERT
    }

    private final Settings settings;
    private final CqlSession session;
    private final Server server;
    private final Figures figures = new Figures();

    /** By memtable: rows from here on are not there yet. */
    private final Map<String, Long> inserted = new LinkedHashMap<>();

    private Bench(Settings settings, CqlSession session, Server server) {
        this.settings = settings;
        this.session = session;
        this.server = server;
    }

    /** Arguments are {@code --name=value}; {@code --out} names the file for all figures. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        Map<String, String> given = new LinkedHashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            if (!argument.startsWith("--") || parts.length != 2) {
                throw new IllegalArgumentException("give --name=value, not " + argument);
            }
            given.put(parts[0].substring(2), parts[1]);
        }
        String out = given.remove("out");
        Settings settings = Settings.parse(given);
        if (!given.isEmpty()) {
            throw new IllegalArgumentException("there is no " + given.keySet());
        }
        try (CqlSession session = connect(settings.host);
                Server server = new Server(settings.jmxPort)) {
            Figures figures = new Bench(settings, session, server).run();
            System.out.print(figures.table());
            if (out != null) {
                Files.writeString(Path.of(out), figures.json());
            }
        }
    }

    private static CqlSession connect(String host) {
        DriverConfigLoader options = DriverConfigLoader.programmaticBuilder()
                .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, REQUEST_TIMEOUT)
                .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, REQUEST_TIMEOUT)
                .build();
        return CqlSession.builder()
                .addContactPoint(new InetSocketAddress(host, 9042))
                .withLocalDatacenter("datacenter1")
                .withConfigLoader(options)
                .build();
    }

    private Figures run() throws InterruptedException {
        List<Table> tables = make();
        for (Table table : tables) {
            Load.times(session, number -> put(table, number), settings.inFlight, settings.rows);
            inserted.put(table.memtable, settings.rows);
        }
        server.flush(KEYSPACE);
        server.awaitIdle();
        for (int round = 0; round <= settings.rounds; round++) {
            for (Workload workload : Workload.values()) {
                for (Table table : tables) {
                    Figures.Figure figure = measure(workload, table);
                    if (round > 0) {
                        figures.add(workload.name().toLowerCase(Locale.ROOT), table.memtable, figure);
                    }
                }
            }
            Collections.rotate(tables, 1);
        }
        return figures;
    }

    private List<Table> make() {
        session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
        session.execute("CREATE KEYSPACE " + KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        List<Table> tables = new ArrayList<>();
        for (String memtable : settings.memtables) {
            String name = KEYSPACE + ".rows_" + memtable;
            boolean plain = settings.stockOptions.isEmpty() || WITHOUT_SSTABLES.contains(memtable);
            session.execute("CREATE TABLE " + name + " (id bigint PRIMARY KEY, v blob) WITH memtable = '" + memtable + "'"
                    + (plain ? "" : " AND " + settings.stockOptions));
            tables.add(new Table(
                    memtable,
                    session.prepare("SELECT v FROM " + name + " WHERE id = ?"),
                    session.prepare("INSERT INTO " + name + " (id, v) VALUES (?, ?)")));
        }
        return tables;
    }

    /** The processor's time is counted until the node has done in the background what the requests have left to do. */
    private Figures.Figure measure(Workload workload, Table table) throws InterruptedException {
        double cpu = server.cpuSeconds();
        long read = server.readBytes();
        Load.Result result = Load.forSeconds(
                session, requests(workload, table), settings.inFlight, settings.seconds, workload == Workload.GET);
        long readBytes = server.readBytes() - read;
        server.awaitIdle();
        double cpuSeconds = server.cpuSeconds() - cpu;
        long count = result.nanos().getTotalCount();
        if (workload == Workload.INSERT) {
            inserted.merge(table.memtable, count, Long::sum);
        }
        return new Figures.Figure(
                result.perSecond(),
                result.percentileMicros(50),
                result.percentileMicros(99),
                cpuSeconds * 1e6 / count,
                (double) readBytes / count);
    }

    private LongFunction<BoundStatement> requests(Workload workload, Table table) {
        long end = inserted.get(table.memtable);
        return switch (workload) {
            case GET -> number -> table.get.bind(ThreadLocalRandom.current().nextLong(settings.rows));
            case OVERWRITE -> number -> put(table, ThreadLocalRandom.current().nextLong(settings.rows));
            case INSERT -> number -> put(table, end + number);
        };
    }

    /** A value that no compression makes shorter. */
    private BoundStatement put(Table table, long id) {
        byte[] value = new byte[settings.valueBytes];
        new SplittableRandom(ThreadLocalRandom.current().nextLong()).nextBytes(value);
        return table.put.bind(id, ByteBuffer.wrap(value));
    }
}
