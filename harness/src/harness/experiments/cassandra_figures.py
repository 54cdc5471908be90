"""The figures of cells over Cassandra: which there are follows from the axes that have several levels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness import published
from harness.experiments.base import DIED, Row
from harness.experiments.levels import is_strong
from harness.experiments.scaling_figures import law_figures
from harness.fields import levels_text
from harness.report.figures import (
    Cell,
    Figure,
    HeatMap,
    Look,
    Series,
    category_series,
    percentile_figures,
    point_series,
)
from harness.report.numbers import number
from harness.results import Point, Results, grouped

RATE = "operations_per_s"
# Axes whose levels are words: bars.
WORDS = ("level", "entry", "engine")
KINDS = {"writeonly": "insert", "sensor": "insert", "readonly": "read"}
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


def figures_of(results: Results) -> list[Figure | HeatMap]:
    """For each workload: throughput and latency over every axis with several levels, heat maps of levels, the knee of
    latency over throughput, and percentiles."""
    varying = [axis for axis, levels in results.variant.axes.items() if len(levels) > 1]
    figures: list[Figure | HeatMap] = []
    for workload, points in grouped(results.points(), lambda point: str(point.levels["workload"])).items():
        over = [axis for axis in varying if axis not in ("workload", "engine")] or ["engine"]
        for axis in over:
            figures += _over(results, workload, points, axis, varying)
        if KINDS.get(workload) == "insert" and len(points) <= MOST_CURVES:
            figures += _over_time(workload, points, varying)
        if "level" in varying:
            figures.append(_heat_map(results, workload, points, varying))
        late = f"open_{KINDS.get(workload, 'read')}_p99_us"
        if "level" in varying and any(point.summary(late) for point in points):
            title = f"{workload}: 99th percentile by level, in an open loop at a rate that every level can do"
            figures.append(_figure(results, title, points, "level", late, "µs", varying))
        if "threads" in varying:
            figures.append(_knee(workload, points, varying))
            figures += law_figures(
                workload,
                grouped(points, _levels_of(["engine", *(of for of in varying if of not in ("engine", "threads"))])),
            )
        figures += percentile_figures(
            _fastest(points), lambda point: str(point.levels["workload"]), _levels_of(varying)
        )
    return figures


def _over_time(workload: str, points: Sequence[Point], varying: Sequence[str]) -> list[Figure]:
    """A curve for each cell's first run: what becomes of inserts as a memtable fills up and is flushed."""
    named = [(_levels_of(varying)(point), point.rows[0]) for point in points if point.rows and point.rows[0].series]
    if not named:
        return []
    note = "The first run of each cell, second by second, from its own first second on."
    axis = "seconds since the first insert"
    if any(_died(row) for _, row in named):
        note += " A cross: a node died there of its limit of memory."
    rates = [_curve(name, row, row.series) for name, row in named]
    # A logarithm has no place for seconds in which nothing ended.
    late = [_curve(name, row, [of for of in row.latency_us if of[1] > 0]) for name, row in named]
    return [
        Figure(f"{workload}: throughput over time", note, axis, "operations/s", tuple(rates)),
        Figure(f"{workload}: mean latency over time", note, axis, "µs", tuple(late), y_log=True),
    ]


def _curve(name: str, row: Row, points: Sequence[tuple[float, float]]) -> Series:
    began = row.series[0][0]
    return Series(name, tuple((second - began, value, value, value) for second, value in points), died=_died(row))


def _died(row: Row) -> bool:
    return any(mark.startswith(DIED) for mark in row.marks)


def _over(results: Results, workload: str, points: Sequence[Point], axis: str, varying: Sequence[str]) -> list[Figure]:
    kind = KINDS.get(workload, "read")
    return [
        _figure(results, f"{workload}: throughput over {TITLES[axis]}", points, axis, RATE, "operations/s", varying),
        _figure(
            results, f"{workload}: mean latency over {TITLES[axis]}", points, axis, f"{kind}_mean_us", "µs", varying
        ),
    ]


def _figure(
    results: Results, title: str, points: Sequence[Point], axis: str, metric: str, unit: str, varying: Sequence[str]
) -> Figure:
    others = [of for of in varying if of not in (axis, "workload")]
    groups = grouped(points, lambda point: ", ".join(_word(of, point) for of in others) or "all")
    levels = results.variant.axes[axis]
    latency = metric != RATE
    if axis in WORDS:
        named = [str(level) for level in levels]
        series = tuple(category_series(name, of, axis, named, metric) for name, of in groups.items())
        return Figure(title, _note(latency), "", unit, series, categories=tuple(named))
    lines = [point_series(name, of, axis, metric) for name, of in groups.items()]
    beside = str(results.variant.parameters["beside"])
    if axis == "threads" and not latency:
        lines += _published(beside)
    note = _note(latency) + (f" Dotted: {published.OKUYAMA_RIAK_HARDWARE}; compare shapes." if beside != "none" else "")
    return Figure(title, note, TITLES[axis], unit, tuple(lines), x_log=axis == "threads", y_log=latency)


def _note(latency: bool) -> str:
    return (
        "From asking, or when it should have been asked, to the answer."
        if latency
        else "Of the flat part of each cell; the table marks the others."
    )


def _word(axis: str, point: Point) -> str:
    value = point.levels[axis]
    return str(value) if axis in ("engine", "level") else f"{axis} {value}"


def _levels_of(varying: Sequence[str]) -> Callable[[Point], str]:
    axes = [axis for axis in varying if axis != "workload"]
    return lambda point: ", ".join(_word(axis, point) for axis in axes) or point.store


def _fastest(points: Sequence[Point]) -> list[Point]:
    """All engines at the levels at which one of them was fastest: a curve for every cell would be a thicket."""
    groups = grouped(
        points, lambda point: levels_text({axis: of for axis, of in point.levels.items() if axis != "engine"})
    )
    rates = {name: [of.median for point in group if (of := point.summary(RATE))] for name, group in groups.items()}
    return groups[max(groups, key=lambda name: max(rates[name], default=0.0))]


def _heat_map(results: Results, workload: str, points: Sequence[Point], varying: Sequence[str]) -> HeatMap:
    others = [of for of in varying if of not in ("level", "workload")]
    cells = []
    for point in points:
        if summary := point.summary(RATE):
            row = ", ".join(_word(of, point) for of in others) or "all"
            level, replication = str(point.levels["level"]), int(point.levels["replication"])
            text = number(summary.median)
            cells.append(Cell(row, level, summary.median, text, is_strong(level, replication)))
    rows = tuple(dict.fromkeys(cell.row for cell in cells))
    columns = tuple(str(level) for level in results.variant.axes["level"])
    note = "Operations per second. Framed: strong, since reads and writes of this level meet in a replica (R + W > N)."
    return HeatMap(f"{workload}: throughput by level", note, TITLES["level"], rows, columns, tuple(cells))


def _knee(workload: str, points: Sequence[Point], varying: Sequence[str]) -> Figure:
    """Latency over throughput, a line through growing numbers of clients."""
    kind = KINDS.get(workload, "read")
    others = [of for of in varying if of not in ("threads", "workload")]
    series = []
    for name, of in grouped(points, lambda point: ", ".join(_word(axis, point) for axis in others) or "all").items():
        marks = []
        for point in sorted(of, key=lambda point: int(point.levels["threads"])):
            rate, latency = point.summary(RATE), point.summary(f"{kind}_mean_us")
            if rate and latency:
                half = latency.half_width or 0.0
                marks.append((rate.median, latency.median, latency.median - half, latency.median + half))
        series.append(Series(name, tuple(marks)))
    note = "Along a line the clients grow: where it turns upwards, more of them only wait longer."
    return Figure(f"{workload}: latency over throughput", note, "operations/s", "µs", tuple(series), y_log=True)


def _published(beside: str) -> list[Series]:
    peaks = {"none": {}, "disk": published.ON_DISK_PER_S, "memory": published.IN_MEMORY_PER_S}[beside]
    return [
        Series(f"{name}, 4 nodes, at most", ((float(clients), rate, rate, rate),), Look.PUBLISHED)
        for name, (clients, rate) in peaks.items()
    ]
