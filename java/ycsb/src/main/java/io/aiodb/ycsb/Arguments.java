package io.aiodb.ycsb;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import site.ycsb.Client;
import site.ycsb.workloads.CoreWorkload;

/** What was asked for, checked before anything starts, and as YCSB's client takes it. */
final class Arguments {
    static final String USAGE =
            """
            usage: ycsb load|run STORE [-P FILE]... [-p NAME=VALUE]... [-threads N] [-target N] [-s] [-l LABEL]

              STORE    aiodb, rocksdb, lmdb: in this process, in -p store.directory=DIRECTORY
                       store-mysql, store-redis: a server, -p store.host=HOST -p store.port=PORT, and a directory
                       redis: a server by commands of its own, -p redis.host=HOST -p redis.port=PORT
                       cql: a Cassandra cluster, -p hosts=HOST,HOST
              load     insert -p recordcount=N records
              run      do -p operationcount=N operations, or as many as -p maxexecutiontime=SECONDS allows
              -P FILE  a workload: properties, later ones count; workloads/ has YCSB's and others
              -target  operations a second, of all threads together; 0: as many as can be
              -s       say every 10 seconds how far it is
            """;

    /** A request that cannot be done, in words for the user. */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }

    private static final Map<String, Class<?>> CLIENTS = Map.of(
            "aiodb", StoreClient.class,
            "lmdb", StoreClient.class,
            "rocksdb", StoreClient.class,
            "store-mysql", StoreClient.class,
            "store-redis", StoreClient.class,
            "redis", RedisClient.class,
            "cql", CqlClient.class);

    /** Before the kind of a store on a server, whose own clients have its bare name. */
    private static final String ON_A_SERVER = "store-";

    private final List<String> passedOn = new ArrayList<>();
    private final Properties properties = new Properties();

    private Arguments() {}

    /** The arguments of YCSB's client that do what these ask for. */
    static List<String> ofClient(List<String> given) throws Refused {
        if (given.size() < 2) {
            throw new Refused("say what to do and with which store\n\n" + USAGE);
        }
        String phase = given.get(0);
        String store = given.get(1);
        if (!phase.equals("load") && !phase.equals("run")) {
            throw new Refused("there is no `" + phase + "`: give load or run");
        }
        Class<?> client = CLIENTS.get(store);
        if (client == null) {
            throw new Refused("there is no store `" + store + "`: give one of " + CLIENTS.keySet().stream().sorted().toList());
        }
        Arguments arguments = new Arguments();
        arguments.pass(phase.equals("load") ? "-load" : "-t");
        arguments.pass("-db", client.getName());
        if (client == StoreClient.class) {
            arguments.pass("-p", StoreClient.KIND + "=" + store.replaceFirst("^" + ON_A_SERVER, ""));
        }
        arguments.options(given.subList(2, given.size()));
        arguments.check(phase);
        return arguments.passedOn;
    }

    private void options(List<String> options) throws Refused {
        Properties single = new Properties();
        for (int at = 0; at < options.size(); at++) {
            String option = options.get(at);
            if (option.equals("-s")) {
                pass(option);
                continue;
            }
            if (!List.of("-P", "-p", "-threads", "-target", "-l").contains(option)) {
                throw new Refused("there is no option `" + option + "`\n\n" + USAGE);
            }
            if (++at == options.size()) {
                throw new Refused("something is missing behind " + option);
            }
            String value = options.get(at);
            pass(option, value);
            switch (option) {
                case "-P" -> load(Path.of(value));
                case "-p" -> set(single, value);
                case "-threads" -> single.setProperty(Client.THREAD_COUNT_PROPERTY, value);
                case "-target" -> single.setProperty(Client.TARGET_PROPERTY, value);
                default -> {}
            }
        }
        properties.putAll(single);
        if (properties.getProperty(Client.WORKLOAD_PROPERTY) == null) {
            pass("-p", Client.WORKLOAD_PROPERTY + "=" + CoreWorkload.class.getName());
        }
    }

    private void load(Path file) throws Refused {
        try (InputStream in = Files.newInputStream(file)) {
            properties.load(in);
        } catch (IOException | IllegalArgumentException failure) {
            throw new Refused("cannot read the workload " + file + ": " + failure);
        }
    }

    private static void set(Properties single, String assignment) throws Refused {
        int equals = assignment.indexOf('=');
        if (equals < 1) {
            throw new Refused("-p " + assignment + ": give NAME=VALUE");
        }
        single.setProperty(assignment.substring(0, equals), assignment.substring(equals + 1));
    }

    private void check(String phase) throws Refused {
        number(Client.THREAD_COUNT_PROPERTY, 1);
        number(Client.TARGET_PROPERTY, 0);
        number(CoreWorkload.FIELD_COUNT_PROPERTY, 1);
        long records = number(Client.RECORD_COUNT_PROPERTY, 0);
        long seconds = number(Client.MAX_EXECUTION_TIME, 0);
        if (records == 0) {
            throw new Refused("how many records? give -p " + Client.RECORD_COUNT_PROPERTY + "=N or a workload that says it");
        }
        if (phase.equals("run") && number(Client.OPERATION_COUNT_PROPERTY, 0) == 0 && seconds == 0) {
            throw new Refused("how much? give -p " + Client.OPERATION_COUNT_PROPERTY + "=N or -p "
                    + Client.MAX_EXECUTION_TIME + "=SECONDS");
        }
    }

    /** The number that a property has, 0 where it has none. */
    private long number(String name, long least) throws Refused {
        String value = properties.getProperty(name);
        if (value == null) {
            return 0;
        }
        try {
            long number = Long.parseLong(value.strip());
            // YCSB's client counts in whole numbers of this size.
            if (number >= least && number <= Integer.MAX_VALUE) {
                return number;
            }
        } catch (NumberFormatException notOne) {
            // Refused below, in the same words.
        }
        throw new Refused(name + " = " + value + ": give a whole number from " + least + " to " + Integer.MAX_VALUE);
    }

    private void pass(String... arguments) {
        passedOn.addAll(List.of(arguments));
    }
}
