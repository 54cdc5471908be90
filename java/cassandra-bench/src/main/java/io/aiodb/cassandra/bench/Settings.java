package io.aiodb.cassandra.bench;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What is measured, as it was given: {@code --name=value} each.
 *
 * @param host where the node listens for CQL
 * @param jmxPort where it listens for JMX
 * @param lines what is compared
 * @param workloads what is asked of each
 * @param rows that are loaded into each table
 * @param valueBytes of each row
 * @param inFlight requests that are under way at once
 * @param perSecond requests that are begun each second; 0 for as many as are answered
 * @param seconds that each line is measured for in each round
 * @param windowSeconds how long each of the pieces of that time is whose rates are kept; 0 for none
 * @param warmUpSeconds of the same load before, each time, which are not counted
 * @param firstSeconds that each line is asked for in the round before the first that counts: until the virtual machine has
 *     compiled what the requests run through, that takes more of the processor than they do
 * @param rounds that count; with 0 nothing but the load is done
 * @param replicas of each row
 * @param flush whether what was loaded is written to SSTables first
 * @param memoryGroup the control group of the node, whose memory is limited once all is loaded; null for no limit
 * @param memoryFraction how much of a line's data files the limit has room for, beside the node's own idle memory
 * @param out the file for all figures; null for none
 */
record Settings(
        String host,
        int jmxPort,
        List<Line> lines,
        List<Workload> workloads,
        long rows,
        int valueBytes,
        int inFlight,
        int perSecond,
        int seconds,
        int windowSeconds,
        int warmUpSeconds,
        int firstSeconds,
        int rounds,
        int replicas,
        boolean flush,
        Path memoryGroup,
        double memoryFraction,
        Path out) {
    static Settings parse(String[] arguments) {
        Map<String, String> given = named(arguments);
        String memoryGroup = given.remove("memory-group");
        String out = given.remove("out");
        Settings settings = new Settings(
                taken(given, "host", "127.0.0.1"),
                Integer.parseInt(taken(given, "jmx", "7301")),
                Line.parse(taken(given, "lines", "null,aiodb,default,tuned")),
                Workload.parse(taken(given, "workloads", "get,overwrite,insert,column,range")),
                Long.parseLong(taken(given, "rows", "1000000")),
                Integer.parseInt(taken(given, "value-bytes", "1024")),
                Integer.parseInt(taken(given, "in-flight", "64")),
                Integer.parseInt(taken(given, "per-second", "0")),
                Integer.parseInt(taken(given, "seconds", "20")),
                Integer.parseInt(taken(given, "window-seconds", "0")),
                Integer.parseInt(taken(given, "warm-up-seconds", "2")),
                Integer.parseInt(taken(given, "first-seconds", "60")),
                Integer.parseInt(taken(given, "rounds", "5")),
                Integer.parseInt(taken(given, "replicas", "1")),
                Boolean.parseBoolean(taken(given, "flush", "true")),
                memoryGroup == null ? null : Path.of(memoryGroup),
                Double.parseDouble(taken(given, "memory-fraction", "0.333")),
                out == null ? null : Path.of(out));
        if (!given.isEmpty()) {
            throw new IllegalArgumentException("there is no " + given.keySet());
        }
        if (settings.rows < 1 || settings.inFlight < 1 || settings.seconds < 1 || settings.windowSeconds < 0
                || settings.firstSeconds < 1 || settings.rounds < 0 || settings.replicas < 1) {
            throw new IllegalArgumentException(
                    "rows, in-flight, seconds, first-seconds and replicas must be at least 1, rounds and window-seconds at least 0");
        }
        return settings;
    }

    private static Map<String, String> named(String[] arguments) {
        Map<String, String> given = new LinkedHashMap<>();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            if (!argument.startsWith("--") || parts.length != 2) {
                throw new IllegalArgumentException("give --name=value, not " + argument);
            }
            given.put(parts[0].substring(2), parts[1]);
        }
        return given;
    }

    private static String taken(Map<String, String> given, String name, String fallback) {
        String value = given.remove(name);
        return value == null ? fallback : value;
    }
}
