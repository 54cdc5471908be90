"""Storage modes: throughput and latency by clients, or over the time in which they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harness.experiments import client
from harness.experiments.storage_modes import plain
from harness.report.figure import Figure, Series, flat_note, known_marks, point_series
from harness.report.names import level_name, levels_name, store_name
from harness.results import Point, Results, grouped
from harness.rows import Row

RATE = "operations_per_s"


def figures(results: Results) -> Sequence[Figure]:
    """For each store and size."""
    if results.variant.parameters["stage_seconds"]:
        return _over_time(results)
    drawn = []
    for data, points in grouped(results.points(), data_name).items():
        modes = grouped(points, lambda point: str(point.levels["modes"]))
        note = f"{flat_note(results)} {_workload(results)}."
        kinds = [kind for kind in map(str.lower, client.KINDS) if any(of.summary(f"{kind}_p99_us") for of in points)]
        rates = tuple(point_series(store_name(name), of, "threads", RATE, store=name) for name, of in modes.items())
        late = tuple(
            point_series(_of_kind(store_name(name), kind, kinds), of, "threads", f"{kind}_p99_us", store=name)
            for name, of in modes.items()
            for kind in kinds
        )
        drawn += [
            Figure(f"{data}: throughput by clients", note, "clients", "operations/s", rates, x_log=True),
            Figure(f"{data}: 99th percentile by clients", note, "clients", "µs", late, x_log=True, y_log=True),
        ]
    return drawn


def data_name(point: Point) -> str:
    """Store and size, without modes and clients."""
    return f"{store_name(point.store)}, {levels_name(point.levels, ('field_bytes', 'memory_times'))}"


def _of_kind(name: str, kind: str, kinds: Sequence[str]) -> str:
    return name if len(kinds) == 1 else f"{name}, {kind}"


def _workload(results: Results) -> str:
    return f"Workload: {level_name('workload', results.variant.parameters['workload'])}"


def _over_time(results: Results) -> list[Figure]:
    """For each store, size and number of clients throughput and mean latency from the first modes to the last."""
    drawn = []
    for title, points in grouped(
        results.points(), lambda point: f"{data_name(point)}, {level_name('threads', point.levels['threads'])}"
    ).items():
        moments = _moments(points)
        note = "Dotted: from there on the table has these modes"
        note += " (first repetition)." if max(len(point.rows) for point in points) > 1 else "."
        note += f" {_workload(results)}. Each second a point.{_held(points)}"
        axis = "seconds since the first operation"
        rates = _lines(points, lambda row: row.series)
        late = _lines(points, lambda row: [of for of in row.latency_us if of[1] > 0])
        drawn += [
            Figure(f"{title}: throughput while modes change", note, axis, "operations/s", rates, moments=moments),
            Figure(f"{title}: mean latency while modes change", note, axis, "µs", late, y_log=True, moments=moments),
        ]
    return drawn


def _held(points: Sequence[Point]) -> str:
    """What of the table was in memory when each of the modes ended, in the first repetition: modes say what comes
    there, and not what is there already."""
    values = [point.rows[0].values for point in points if point.rows]
    parts = [
        f"{of['keys_in_memory']:.0%} and {of['values_in_memory']:.0%}"
        for of in values
        if "keys_in_memory" in of and "values_in_memory" in of
    ]
    return f" Of keys and of values in memory when each of the modes ended: {'; '.join(parts)}." if parts else ""


def _moments(points: Sequence[Point]) -> tuple[tuple[float, str], ...]:
    """When each of the modes began, in the first repetition."""
    rows = [point.rows[0] for point in points if point.rows]
    start = _start(rows)
    return tuple((max(0.0, row.values["began_s"] - start), store_name(plain(row.levels["modes"]))) for row in rows)


def _lines(points: Sequence[Point], of: Callable[[Row], Iterable[tuple[float, float]]]) -> tuple[Series, ...]:
    """A line for each repetition, through all modes."""
    series = []
    count = max(len(point.rows) for point in points)
    for number in range(count):
        rows = [point.rows[number] for point in points if number < len(point.rows)]
        start = _start(rows)
        line = {second - start: value for row in rows for second, value in of(row)}
        name = f"repetition {number + 1}" if count > 1 else store_name(points[0].store)
        series.append(Series(name, known_marks(sorted(line.items())), store=points[0].store))
    return tuple(series)


def _start(rows: Sequence[Row]) -> float:
    """The second of a run in which its first operations were counted."""
    return min((second for row in rows for second, _ in row.series), default=0.0)
