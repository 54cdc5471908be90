"""What becomes of inserts once memory is used up."""

from collections.abc import Callable, Sequence

from harness.experiments.memory_full import POINT_SECONDS
from harness.report.figure import Figure, Series, known_marks
from harness.report.names import store_name
from harness.results import Point, Results
from harness.rows import DIED, Row
from harness.statistics import LEAST_VALUES


def figures(results: Results) -> Sequence[Figure]:
    """Throughput and mean latency over time."""
    memory = results.variant.parameters["memory_mib"]
    note = f"Points of {POINT_SECONDS} s, of each repetition. Memory: {memory} MiB. A cross: the store died there. "
    note += "A mark at the foot: no insert ended in that time."
    if early := [_name(of, row) for of in results.points() for row in of.rows if not row.series]:
        note += f" Without a line, since dead before it had done anything for a second: {', '.join(early)}."
    rate = _over_time(results, lambda row: row.series)
    # Where no insert ended there is no latency.
    latency = _over_time(results, lambda row: [of for of in row.latency_us if of[1] > 0])
    x = "seconds since the first insert"
    return [
        Figure("Inserts per second over time", note, x, "inserts/s", rate, y_log=True),
        Figure("Mean latency over time", note, x, "µs", latency, y_log=True),
    ]


def _over_time(results: Results, of: Callable[[Row], Sequence[tuple[float, float]]]) -> tuple[Series, ...]:
    """A line for each store and repetition, in seconds since its first insert."""
    series = []
    for point in results.points():
        for row in point.rows:
            doubtful = len(point.runs) < LEAST_VALUES or bool(point.doubts())
            marks = known_marks(((second - row.window_s[0], value) for second, value in of(row)), doubtful)
            died = any(mark.startswith(DIED) for mark in row.marks)
            series.append(Series(_name(point, row), marks, store=point.store, died=died))
    return tuple(series)


def _name(point: Point, row: Row) -> str:
    repetition = point.rows.index(row) + 1
    name = store_name(point.store)
    return name if len(point.rows) == 1 else f"{name}, repetition {repetition}"
