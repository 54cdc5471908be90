"""The server by workload, beside Redis or the device."""

from collections.abc import Sequence

from harness.experiments.serve import BESIDE_REDIS, IDLE, LARGE, connections
from harness.report.figure import Figure, Look, Series, category_series, known_marks
from harness.report.names import level_name
from harness.results import Point, Results

REDIS = "redis-server"


def figures(results: Results) -> Sequence[Figure]:
    """The ratio, the rates behind it, latency, and processor time for each request."""
    points = results.points()
    return [drawn for drawn in (_ratios(points), _rates(points), _late(points), _costs(points)) if drawn.series]


def _ratios(points: Sequence[Point]) -> Figure:
    compared = [point for point in points if point.levels["workload"] != IDLE]
    series = [
        _series(f"aiodb serve by {REDIS}", compared, _beside(compared), "ratio"),
        _series("aiodb serve by the device", compared, _large(compared), "ratio"),
    ]
    note = "Both measured in the same run, the server on one core, the client on another."
    return _figure("Requests per second by those of the other", note, "ratio", compared, series, level=True)


def _rates(points: Sequence[Point]) -> Figure:
    series = _both(points, "requests_per_s", "other_per_s") + _device(points)
    return _figure("Requests per second", "Of as many connections for both.", "requests/s", points, series, y_log=True)


def _device(points: Sequence[Point]) -> list[Series]:
    """A dash over each workload that is held against the device, at what it gave."""
    series = []
    for at, point in enumerate(points):
        if ceiling := point.ceiling_per_s():
            ends = known_marks((at + side, ceiling) for side in (-0.45, 0.45))
            series.append(
                Series(f"the device, {connections(str(point.levels['workload']))} reads in flight", ends, Look.CEILING)
            )
    return series


def _late(points: Sequence[Point]) -> Figure:
    series = _both(points, "p99_us", "other_p99_us")
    note = "Each connection waits for its replies: who does more per second is also asked more."
    return _figure("Latency, 99th percentile", note, "µs", points, series, y_log=True)


def _costs(points: Sequence[Point]) -> Figure:
    series = _both(points, "cpu_us", "other_cpu_us")
    note = "Of the server's process, the kernel's work for it included."
    return _figure("Processor time for each request", note, "µs/request", points, series, y_log=True)


def _figure(
    title: str,
    note: str,
    y_title: str,
    points: Sequence[Point],
    series: Sequence[Series],
    level: bool = False,
    y_log: bool = False,
) -> Figure:
    """A figure over the workloads of the points."""
    names = tuple(level_name("workload", workload) for workload in _workloads(points))
    shown = tuple(of for of in series if of.marks)
    line = (1.0, "as fast as the other") if level else None
    return Figure(title, note, "", y_title, shown, y_log=y_log, level=line, categories=names)


def _both(points: Sequence[Point], ours: str, theirs: str) -> list[Series]:
    """What both servers have of one quantity."""
    return [
        _series("aiodb serve", points, points, ours),
        _series(REDIS, points, _beside(points), theirs, store="redis"),
    ]


def _series(name: str, all_of: Sequence[Point], points: Sequence[Point], metric: str, store: str = "") -> Series:
    """A metric of some of the points, each at the place of its workload among all."""
    return category_series(name, points, "workload", _workloads(all_of), metric, store=store)


def _workloads(points: Sequence[Point]) -> list[str]:
    return [str(point.levels["workload"]) for point in points]


def _beside(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.levels["workload"] in BESIDE_REDIS]


def _large(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.levels["workload"] in LARGE]
