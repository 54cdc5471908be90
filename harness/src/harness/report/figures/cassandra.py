"""The figures of cells over Cassandra: which there are follows from the axes that have several levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import published
from harness.experiments.levels import is_strong
from harness.fields import Value, levels_text
from harness.report.figure import (
    Cell,
    Figure,
    HeatMap,
    Look,
    Series,
    category_series,
    flat_note,
    known_marks,
    percentile_figures,
    point_series,
)
from harness.report.figures.scaling import law_figures
from harness.report.names import level_name, point_name
from harness.report.numbers import number
from harness.results import Point, Results, grouped
from harness.rows import DIED, Row

RATE = "operations_per_s"
EXECUTION = "execution_s"
EXECUTION_NOTE = "From the first operation to the end of the last, however fast they were in between."
# Axes whose levels are words: bars.
WORDS = ("level", "entry", "engine")
KINDS = {"writeonly": "insert", "sensor": "insert", "readonly": "read"}
LATENCY_NOTE = "From asking, or when it should have been asked, to the answer."
# A figure of more curves over time would be a thicket.
MOST_CURVES = 8
TITLES = {
    "level": "consistency level",
    "entry": "entry node",
    "engine": "engine",
    "threads": "clients",
    "nodes": "nodes",
    "replication": "replicas",
}


def figures(results: Results) -> Sequence[Figure | HeatMap]:
    """For each workload: throughput and 99th percentile over every axis with several levels, heat maps of levels, and
    percentiles."""
    varying = [axis for axis, levels in results.variant.axes.items() if len(levels) > 1]
    drawn: list[Figure | HeatMap] = []
    for workload, points in grouped(results.points(), lambda point: str(point.levels["workload"])).items():
        over = [axis for axis in varying if axis not in ("workload", "engine")] or ["engine"]
        for axis in over:
            drawn += _over(results, workload, points, axis)
        if any(point.summary(EXECUTION) for point in points):
            drawn += _execution(results, workload, points, over)
        if KINDS.get(workload) == "insert" and len(points) <= MOST_CURVES:
            drawn += _over_time(results, workload, points)
        if "level" in varying:
            drawn.append(_heat_map(results, workload, points))
        late = f"open_{KINDS.get(workload, 'read')}_p99_us"
        if "level" in varying and any(point.summary(late) for point in points):
            title = f"{_letter(workload)}: 99th percentile by level, in an open loop at a rate that every level can do"
            drawn.append(_figure(results, title, points, "level", late, "µs"))
        if "threads" in varying:
            drawn += law_figures(_letter(workload), grouped(points, _named(results, "threads")))
        drawn += percentile_figures(_fastest(points), lambda point: _letter(point.levels["workload"]), _named(results))
    return drawn


def _letter(workload: Value) -> str:
    return level_name("workload", workload)


def _named(results: Results, *without: str) -> Callable[[Point], str]:
    """What tells a point from others of its workload, in words."""
    return lambda point: point_name(results, point, without=("workload", *without))


def _over_time(results: Results, workload: str, points: Sequence[Point]) -> list[Figure]:
    """A curve for each cell's first run: what becomes of inserts as a memtable fills up and is flushed."""
    shown = [(point, point.rows[0]) for point in points if point.rows and point.rows[0].series]
    if not shown:
        return []
    note = "The first run of each cell, second by second, from its own first second on."
    axis = "seconds since the first insert"
    if any(_died(row) for _, row in shown):
        note += " A cross: a node died there of its limit of memory."
    name = _named(results)
    rates = [_curve(name(point), point, row, row.series) for point, row in shown]
    # A logarithm has no place for seconds in which nothing ended.
    late = [_curve(name(point), point, row, [of for of in row.latency_us if of[1] > 0]) for point, row in shown]
    title = _letter(workload)
    return [
        Figure(f"{title}: throughput over time", note, axis, "operations/s", tuple(rates)),
        Figure(f"{title}: mean latency over time", note, axis, "µs", tuple(late), y_log=True),
    ]


def _curve(name: str, point: Point, row: Row, points: Sequence[tuple[float, float]]) -> Series:
    began = row.series[0][0]
    marks = known_marks((second - began, value) for second, value in points)
    return Series(name, marks, store=str(point.levels["engine"]), died=_died(row))


def _died(row: Row) -> bool:
    return any(mark.startswith(DIED) for mark in row.marks)


def _over(results: Results, workload: str, points: Sequence[Point], axis: str) -> list[Figure]:
    kind, title = KINDS.get(workload, "read"), _letter(workload)
    return [
        _figure(results, f"{title}: throughput by {TITLES[axis]}", points, axis, RATE, "operations/s"),
        _figure(results, f"{title}: 99th percentile by {TITLES[axis]}", points, axis, f"{kind}_p99_us", "µs"),
    ]


def _execution(results: Results, workload: str, points: Sequence[Point], over: Sequence[str]) -> list[Figure]:
    """How long all operations of a cell took, over each axis."""
    operations = int(results.variant.parameters["operations"])
    title = f"{_letter(workload)}: execution time of {operations:,} operations by"
    return [_figure(results, f"{title} {TITLES[axis]}", points, axis, EXECUTION, "s") for axis in over]


def _figure(results: Results, title: str, points: Sequence[Point], axis: str, metric: str, unit: str) -> Figure:
    groups = grouped(points, _named(results, axis))
    levels = results.variant.axes[axis]
    latency = metric not in (RATE, EXECUTION)
    note = LATENCY_NOTE if latency else EXECUTION_NOTE if metric == EXECUTION else flat_note(results)
    if axis in WORDS:
        named = [str(level) for level in levels]
        series = tuple(category_series(name, of, axis, named, metric) for name, of in groups.items())
        words = tuple(level_name(axis, level) for level in levels)
        return Figure(title, note, "", unit, series, y_log=latency, categories=words)
    lines = [point_series(name, of, axis, metric) for name, of in groups.items()]
    beside = str(results.variant.parameters["beside"])
    if axis == "threads" and metric == RATE and beside != "none":
        lines += _published(beside)
        note += f" Dotted: {published.OKUYAMA_RIAK_HARDWARE}; compare shapes."
    return Figure(title, note, TITLES[axis], unit, tuple(lines), x_log=axis == "threads", y_log=latency)


def _fastest(points: Sequence[Point]) -> list[Point]:
    """All engines at the levels at which one of them was fastest: a curve for every cell would be a thicket."""
    groups = grouped(
        points, lambda point: levels_text({axis: of for axis, of in point.levels.items() if axis != "engine"})
    )
    rates = {name: [of.median for point in group if (of := point.summary(RATE))] for name, group in groups.items()}
    return groups[max(groups, key=lambda name: max(rates[name], default=0.0))]


def _heat_map(results: Results, workload: str, points: Sequence[Point]) -> HeatMap:
    name = _named(results, "level")
    cells = []
    for point in points:
        if summary := point.summary(RATE):
            level, replication = str(point.levels["level"]), int(point.levels["replication"])
            text = number(summary.median)
            cells.append(Cell(name(point), level, summary.median, text, is_strong(level, replication)))
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    columns = tuple(str(level) for level in results.variant.axes["level"])
    note = "Operations per second. Framed: strong, since reads and writes of this level meet in a replica (R + W > N)."
    return HeatMap(f"{_letter(workload)}: throughput by level", note, TITLES["level"], rows, columns, tuple(cells))


def _published(beside: str) -> list[Series]:
    peaks = {"none": {}, "disk": published.ON_DISK_PER_S, "memory": published.IN_MEMORY_PER_S}[beside]
    return [
        Series(f"{name}, 4 nodes, at most", known_marks([(float(clients), rate)]), Look.PUBLISHED)
        for name, (clients, rate) in peaks.items()
    ]
