package io.aiodb.cassandra.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/** What was measured of each workload and memtable, round by round. */
final class Figures {
    /**
     * One workload on one memtable in one round.
     *
     * @param cpuMicros of the node for each request, with what it did afterwards until it was idle
     * @param readBytes of devices for each request
     */
    record Figure(double perSecond, double p50Micros, double p99Micros, double cpuMicros, double readBytes) {}

    private final Map<String, Map<String, List<Figure>>> all = new LinkedHashMap<>();

    void add(String workload, String memtable, Figure figure) {
        all.computeIfAbsent(workload, key -> new LinkedHashMap<>())
                .computeIfAbsent(memtable, key -> new ArrayList<>())
                .add(figure);
    }

    /** The middle one of an odd number, or half-way between the middle two. */
    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /** For people: medians of all rounds, and the least and most per second. */
    String table() {
        StringBuilder text = new StringBuilder(String.format(
                Locale.ROOT,
                "%-10s %-10s %10s %21s %9s %9s %9s %9s%n",
                "workload", "memtable", "per second", "least to most", "p50 us", "p99 us", "cpu us", "read B"));
        all.forEach((workload, memtables) -> memtables.forEach((memtable, figures) -> {
            double[] perSecond = values(figures, Figure::perSecond);
            text.append(String.format(
                    Locale.ROOT,
                    "%-10s %-10s %10.0f %10.0f %10.0f %9.0f %9.0f %9.1f %9.0f%n",
                    workload,
                    memtable,
                    median(perSecond),
                    Arrays.stream(perSecond).min().orElseThrow(),
                    Arrays.stream(perSecond).max().orElseThrow(),
                    median(values(figures, Figure::p50Micros)),
                    median(values(figures, Figure::p99Micros)),
                    median(values(figures, Figure::cpuMicros)),
                    median(values(figures, Figure::readBytes))));
        }));
        return text.toString();
    }

    /** All figures, one object a line. */
    String json() {
        StringBuilder text = new StringBuilder();
        all.forEach((workload, memtables) -> memtables.forEach((memtable, figures) -> {
            for (int round = 0; round < figures.size(); round++) {
                Figure figure = figures.get(round);
                text.append(String.format(
                        Locale.ROOT,
                        "{\"workload\":\"%s\",\"memtable\":\"%s\",\"round\":%d,\"per_second\":%.1f,\"p50_us\":%.1f,"
                                + "\"p99_us\":%.1f,\"cpu_us\":%.2f,\"read_bytes\":%.1f}%n",
                        workload,
                        memtable,
                        round + 1,
                        figure.perSecond,
                        figure.p50Micros,
                        figure.p99Micros,
                        figure.cpuMicros,
                        figure.readBytes));
            }
        }));
        return text.toString();
    }

    private static double[] values(List<Figure> figures, ToDoubleFunction<Figure> of) {
        return figures.stream().mapToDouble(of).toArray();
    }
}
