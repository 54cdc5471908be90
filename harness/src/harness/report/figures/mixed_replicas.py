"""What clusters of one engine and of mixed engines do, what it costs, and who does it where engines are mixed."""

from collections.abc import Sequence

from harness.experiments.mixed_replicas import BEHIND, NUMBERS
from harness.report.figure import Figure, Series, category_series, flat_note, percentile_figures
from harness.report.names import level_name, store_name
from harness.results import Point, Results, grouped
from harness.stores.cassandra import MIXED

LATE = "From asking, or when it should have been asked, to the answer."
WITHIN = "Memtable and engine, with its server's answer; without queues, commit log and network."


def figures(results: Results) -> Sequence[Figure]:
    """Level by level."""
    drawn: list[Figure] = []
    for level, points in grouped(results.points(), lambda point: str(point.levels["level"])).items():
        drawn += _at(results, f" at {level}" if len(results.variant.axes["level"]) > 1 else "", points)
    return [figure for figure in drawn if any(series.marks for series in figure.series)]


def _at(results: Results, of_level: str, points: Sequence[Point]) -> list[Figure]:
    """What all clusters do and what it costs, and of the mixed one who served reads and what writes cost."""
    both = "Of the nodes' virtual machines and their database servers."
    served = "By Cassandra's own count. Where a level asks several replicas, each counts."
    own = "With its database server."
    mixed, of_mixed = [point for point in points if point.store == MIXED], f"Mixed engines{of_level}:"
    return [
        _by_mix(results, f"Throughput{of_level}", flat_note(results), "operations/s", points, "operations_per_s"),
        _by_mix(results, f"Processor time for an operation{of_level}", both, "µs/operation", points, "cpu_us"),
        _by_mix(results, f"Reads{of_level}: mean latency", LATE, "µs", points, "read_mean_us"),
        _by_mix(results, f"Reads{of_level}: 99th percentile", LATE, "µs", points, "read_p99_us"),
        _by_mix(results, f"Updates{of_level}: 99th percentile", LATE, "µs", points, "update_p99_us"),
        _by_node(results, f"{of_mixed} who serves reads", served, "% of reads", mixed, "reads_{}"),
        _by_node(results, f"{of_mixed} a read within a node", WITHIN, "µs", mixed, "node_{}_read_us"),
        _by_node(results, f"{of_mixed} a write within a node", WITHIN, "µs", mixed, "node_{}_write_us"),
        _by_node(results, f"{of_mixed} processor time for an operation", own, "µs/operation", mixed, "node_{}_cpu_us"),
        *percentile_figures(points, lambda point: _named(point, of_level), lambda point: store_name(point.store)),
    ]


def _named(point: Point, of_level: str) -> str:
    return f"{level_name('mix', point.levels['mix'])}{of_level}"


def _by_mix(results: Results, title: str, note: str, y_title: str, points: Sequence[Point], metric: str) -> Figure:
    series = [
        _series(results, store_name(store), of, metric, store)
        for store, of in grouped(points, lambda point: point.store).items()
    ]
    return _figure(results, title, note, y_title, series)


def _by_node(results: Results, title: str, note: str, y_title: str, points: Sequence[Point], metric: str) -> Figure:
    engines = zip(NUMBERS, BEHIND[MIXED], strict=True)
    series = [
        _series(results, f"node {node}, {store_name(engine)}", points, metric.format(node), engine)
        for node, engine in engines
    ]
    return _figure(results, title, note, y_title, series)


def _series(results: Results, name: str, points: Sequence[Point], metric: str, store: str) -> Series:
    return category_series(name, points, "mix", list(map(str, results.variant.axes["mix"])), metric, store=store)


def _figure(results: Results, title: str, note: str, y_title: str, series: Sequence[Series]) -> Figure:
    words = tuple(level_name("mix", mix) for mix in results.variant.axes["mix"])
    return Figure(title, note, "", y_title, tuple(of for of in series if of.marks), categories=words)
