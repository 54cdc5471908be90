package io.aiodb.cassandra.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/** What was measured of each workload and line, round by round. */
final class Figures {
    /**
     * One workload on one line in one round.
     *
     * @param cpuMicros of the node for each request, with what it did afterwards until it was idle
     * @param readBytes of devices for each request
     * @param writtenBytes to the disk for each request, with what the node did afterwards
     * @param compactions of SSTables that ended meanwhile
     * @param windows requests per second, window by window; empty where that was not asked for
     */
    record Figure(
            double perSecond,
            double p50Micros,
            double p99Micros,
            double cpuMicros,
            double readBytes,
            double writtenBytes,
            long compactions,
            List<Double> windows) {
        private double[] rates(int from, int to) {
            return values(windows.subList(from, to), Double::doubleValue);
        }

        /** The slowest window to the median one. */
        double lowest() {
            double[] rates = rates(0, windows.size());
            return Arrays.stream(rates).min().orElseThrow() / median(rates);
        }

        /** The median of the last third of the windows to that of the first. */
        double lastThird() {
            int third = windows.size() / 3;
            return median(rates(windows.size() - third, windows.size())) / median(rates(0, third));
        }
    }

    /** So many windows and more can be cut into thirds. */
    private static final int MIN_WINDOWS = 3;

    private final Map<String, Map<String, List<Figure>>> all = new LinkedHashMap<>();

    void add(String workload, String line, Figure figure) {
        all.computeIfAbsent(workload, key -> new LinkedHashMap<>())
                .computeIfAbsent(line, key -> new ArrayList<>())
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
                "%-10s %-20s %10s %21s %9s %9s %9s %9s %9s %11s%n",
                "workload", "line", "per second", "least to most", "p50 us", "p99 us", "cpu us", "read B", "written B",
                "compactions"));
        all.forEach((workload, lines) -> lines.forEach((line, figures) -> {
            double[] perSecond = values(figures, Figure::perSecond);
            text.append(String.format(
                    Locale.ROOT,
                    "%-10s %-20s %10.0f %10.0f %10.0f %9.0f %9.0f %9.1f %9.0f %9.0f %11d%n",
                    workload,
                    line,
                    median(perSecond),
                    Arrays.stream(perSecond).min().orElseThrow(),
                    Arrays.stream(perSecond).max().orElseThrow(),
                    median(values(figures, Figure::p50Micros)),
                    median(values(figures, Figure::p99Micros)),
                    median(values(figures, Figure::cpuMicros)),
                    median(values(figures, Figure::readBytes)),
                    median(values(figures, Figure::writtenBytes)),
                    figures.stream().mapToLong(Figure::compactions).sum()));
        }));
        all.forEach((workload, lines) -> lines.forEach((line, figures) -> figures.stream()
                .filter(figure -> figure.windows.size() >= MIN_WINDOWS)
                .forEach(figure -> text.append(String.format(
                        Locale.ROOT,
                        "%s %s: lowest window to median %.3f, last third to first %.3f%n",
                        workload,
                        line,
                        figure.lowest(),
                        figure.lastThird())))));
        return text.toString();
    }

    /** All figures, one object a line. */
    String json() {
        StringBuilder text = new StringBuilder();
        all.forEach((workload, lines) -> lines.forEach((line, figures) -> {
            for (int round = 0; round < figures.size(); round++) {
                Figure figure = figures.get(round);
                text.append(String.format(
                        Locale.ROOT,
                        "{\"workload\":\"%s\",\"line\":\"%s\",\"round\":%d,\"per_second\":%.1f,\"p50_us\":%.1f,"
                                + "\"p99_us\":%.1f,\"cpu_us\":%.2f,\"read_bytes\":%.1f,\"written_bytes\":%.1f,"
                                + "\"compactions\":%d,\"windows\":%s}%n",
                        workload,
                        line,
                        round + 1,
                        figure.perSecond,
                        figure.p50Micros,
                        figure.p99Micros,
                        figure.cpuMicros,
                        figure.readBytes,
                        figure.writtenBytes,
                        figure.compactions,
                        figure.windows));
            }
        }));
        return text.toString();
    }

    private static <T> double[] values(List<T> figures, ToDoubleFunction<T> of) {
        return figures.stream().mapToDouble(of).toArray();
    }
}
