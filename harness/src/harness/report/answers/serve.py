"""Which workloads the server does at least as fast as Redis."""

from collections.abc import Sequence

from harness.experiments.serve import BESIDE_REDIS, IDLE, LARGE, connections
from harness.report.answer import Answer, Shown
from harness.report.answers.common import NOTHING, joined, measured, median, said, times, unknown
from harness.report.names import level_name
from harness.report.quantities import digits
from harness.results import Point, Results

RATIO = "ratio"
LATE = "p99_to_p50"


def answer(results: Results) -> Answer:
    """The workloads by their ratio to redis-server, then what has another beside it, or nothing."""
    points = results.points()
    beside = [point for point in measured(points, RATIO) if point.levels["workload"] in BESIDE_REDIS]
    large = [point for point in measured(points, RATIO) if point.levels["workload"] in LARGE]
    idle = [point for point in measured(points, LATE) if point.levels["workload"] == IDLE]
    parts = [*_redis(beside), *_costs(beside), *_device(large), *_idle(idle)]
    if not parts:
        return NOTHING
    shown = [Shown(_name(point), point, RATIO, "p99_us") for point in (*beside, *large)]
    shown += [Shown(f"{_name(point)}: p99 by median", point, LATE, "p99_us") for point in idle]
    sentence = "; ".join(parts)
    finding = unknown(results.campaign.source, "the source names no rate")
    return Answer(f"{sentence[0].upper()}{sentence[1:]}.", shown, finding)


def _redis(points: Sequence[Point]) -> list[str]:
    """Those that are at least as fast, and those that are not, each from the highest ratio to the lowest."""
    ordered = sorted(points, key=_ratio, reverse=True)
    fast, slow = [of for of in ordered if _ratio(of) >= 1], [of for of in ordered if _ratio(of) < 1]
    parts = []
    if fast:
        parts.append(f"at least as fast as redis-server are {_ratios(fast)}")
    if slow:
        parts.append(f"not as fast {'' if fast else 'as redis-server '}are {_ratios(slow)}")
    return parts


def _costs(points: Sequence[Point]) -> list[str]:
    """The least and the most processor time by that of redis-server."""
    costs = [(median(point, "cpu_us") or 0.0, median(point, "other_cpu_us") or 0.0) for point in points]
    by_theirs = [own / theirs for own, theirs in costs if own and theirs]
    if not by_theirs:
        return []
    least, most = digits(min(by_theirs)), digits(max(by_theirs))
    return [
        f"a request takes {least if least == most else f'{least} to {most}'} times the processor time of redis-server"
    ]


def _device(points: Sequence[Point]) -> list[str]:
    """The part of the device's rate by the number of connections."""
    parts = [f"{digits(_ratio(of))} with {connections(str(of.levels['workload']))} connections" for of in points]
    return [f"of what the device gives, gets reach {joined(parts)}"] if parts else []


def _idle(points: Sequence[Point]) -> list[str]:
    return [
        f"beside idle connections, of which each takes {said(point, 'connection_bytes', 'B')}, the 99th percentile of "
        f"gets is {times(median(point, LATE) or 0.0)} their median"
        for point in points
    ]


def _ratios(points: Sequence[Point]) -> str:
    return joined([f"{_name(point)} ({digits(_ratio(point))})" for point in points])


def _ratio(point: Point) -> float:
    return median(point, RATIO) or 0.0


def _name(point: Point) -> str:
    return level_name("workload", point.levels["workload"])
