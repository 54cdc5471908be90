"""Throughput, processor time and latency of single rows against clients."""

from collections.abc import Sequence

from harness.experiments.direct_access import KINDS
from harness.report.figure import Figure, flat_note, percentile_figures, point_series
from harness.report.names import point_name, store_name
from harness.results import Point, Results, grouped


def figures(results: Results) -> Sequence[Figure]:
    """Of each operation what stores do, what it costs, and how late the last are."""
    drawn = []
    for operation, points in grouped(results.points(), lambda point: str(point.levels["operation"])).items():
        both = "Of the client's process and the server's. aiodb is in the client's."
        drawn += [
            _figure(f"{operation}s per second", flat_note(results), "operations/s", points, "operations_per_s"),
            _figure(f"Processor time for each {operation}, in all", both, "µs/operation", points, "cpu_us"),
            _figure(
                f"Processor time for each {operation}, of the server",
                "Of the server's process, the kernel's work for it included.",
                "µs/operation",
                points,
                "server_cpu_us",
            ),
            _figure(
                f"Latency of {operation}s, 99th percentile",
                flat_note(results),
                "µs",
                points,
                f"{KINDS[operation]}_p99_us",
            ),
            *percentile_figures(
                points, lambda point: f"{point.levels['operation']}s", lambda point: point_name(results, point)
            ),
        ]
    return [figure for figure in drawn if any(series.marks for series in figure.series)]


def _figure(title: str, note: str, y_title: str, points: Sequence[Point], metric: str) -> Figure:
    series = [
        point_series(store_name(store), of, "threads", metric)
        for store, of in grouped(points, lambda point: point.store).items()
    ]
    shown = tuple(of for of in series if of.marks)
    return Figure(f"{title[0].upper()}{title[1:]}", note, "clients", y_title, shown, x_log=True, y_log=True)
