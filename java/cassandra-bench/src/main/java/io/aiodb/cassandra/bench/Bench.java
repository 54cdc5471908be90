package io.aiodb.cassandra.bench;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongFunction;

/**
 * Measures memtables of one node in alternating rounds: each round runs each workload on each line's own tables, in an order
 * that moves on by one from round to round; the first round warms up and is not counted. All tables have rows of the same keys
 * and lengths. Nothing else may run on the machine meanwhile.
 */
public final class Bench {
    private static final String KEYSPACE = "bench";
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(60);

    private final Settings settings;
    private final CqlSession session;
    private final Server server;
    private final Figures figures = new Figures();

    /** By line: rows from here on are not there yet. */
    private final Map<Line, Long> inserted = new EnumMap<>(Line.class);

    private Bench(Settings settings, CqlSession session, Server server) {
        this.settings = settings;
        this.session = session;
        this.server = server;
    }

    /** Arguments are those of {@link Settings}. */
    public static void main(String[] arguments) throws IOException, InterruptedException {
        Settings settings = Settings.parse(arguments);
        try (CqlSession session = connect(settings.host());
                Server server = new Server(settings.jmxPort())) {
            System.out.print(new Bench(settings, session, server).run().table());
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

    private Figures run() throws IOException, InterruptedException {
        load();
        if (settings.flush()) {
            server.flush(KEYSPACE);
        }
        server.awaitIdle();
        if (settings.rounds() == 0) {
            return figures;
        }
        if (settings.memoryGroup() != null) {
            limitMemory();
        }
        List<Line> order = new ArrayList<>(settings.lines());
        for (int round = 0; round <= settings.rounds(); round++) {
            for (Workload workload : settings.workloads()) {
                for (Line line : order) {
                    Figures.Figure figure =
                            measure(workload, line, round == 0 ? settings.firstSeconds() : settings.seconds());
                    System.out.printf(
                            "round %d: %s %s %.0f per second%n",
                            round, workload.title(), line.title(), figure.perSecond());
                    if (round > 0) {
                        figures.add(workload.title(), line.title(), figure);
                    }
                }
            }
            // A run that is stopped leaves the rounds that it had, and an earlier run's figures until it has one.
            if (round > 0 && settings.out() != null) {
                Files.writeString(settings.out(), figures.json());
            }
            Collections.rotate(order, 1);
        }
        return figures;
    }

    private void load() {
        session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
        session.execute("CREATE KEYSPACE " + KEYSPACE
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
                + settings.replicas() + "}");
        Set<String> made = new HashSet<>();
        for (Line line : settings.lines()) {
            inserted.put(line, settings.rows());
            for (Workload workload : settings.workloads()) {
                if (made.add(workload.table(KEYSPACE, line))) {
                    workload.makeTable(session, KEYSPACE, line);
                    LongFunction<BoundStatement> requests =
                            workload.loading(session, KEYSPACE, line, settings.valueBytes());
                    Load.times(session, requests, settings.inFlight(), settings.rows());
                }
            }
        }
    }

    /** Room for the node as it is now, and for a part of the data that a line of Cassandra's own has. */
    private void limitMemory() {
        List<Line> stock = settings.lines().stream().filter(Line::writesSstables).toList();
        long data = stock.stream()
                .mapToLong(line -> server.dataBytes(settings.workloads().get(0).table(KEYSPACE, line)))
                .max()
                .orElseThrow(() -> new IllegalArgumentException("a limit needs a line of Cassandra's own"));
        MemoryGroup group = new MemoryGroup(settings.memoryGroup());
        long idle = server.residentBytes();
        long limit = idle + (long) (data * settings.memoryFraction());
        group.limit(limit);
        System.out.printf("memory: limit %d MB, of which %d MB idle; a line's data files %d MB%n", limit >> 20, idle >> 20, data >> 20);
    }

    /** The processor's time is counted until the node has done in the background what the requests have left to do. */
    private Figures.Figure measure(Workload workload, Line line, int seconds) throws InterruptedException {
        if (settings.warmUpSeconds() > 0) {
            ask(workload, line, settings.warmUpSeconds());
        }
        server.awaitIdle();
        Server.Counts before = server.counts();
        long readBefore = server.readBytes();
        Load.Result result = ask(workload, line, seconds);
        long readBytes = server.readBytes() - readBefore;
        server.awaitIdle();
        Server.Counts after = server.counts();
        long count = result.nanos().getTotalCount();
        return new Figures.Figure(
                result.perSecond(),
                result.percentileMicros(50),
                result.percentileMicros(99),
                (after.cpuSeconds() - before.cpuSeconds()) * 1e6 / count,
                (double) readBytes / count,
                (double) (after.writtenBytes() - before.writtenBytes()) / count,
                after.compactions() - before.compactions(),
                result.windows());
    }

    private Load.Result ask(Workload workload, Line line, int seconds) {
        LongFunction<BoundStatement> requests = workload.requests(
                session, KEYSPACE, line, settings.rows(), inserted.get(line), settings.valueBytes());
        Load.Result result = Load.forSeconds(session, requests, settings, seconds);
        if (workload == Workload.INSERT) {
            inserted.merge(line, result.nanos().getTotalCount(), Long::sum);
        }
        return result;
    }
}
