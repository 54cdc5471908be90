"""Which store does most under each workload, and up to how many clients a store grows."""

from harness.experiments import client
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import (
    NOTHING,
    best,
    by_level,
    distinct,
    grows_until,
    joined,
    measured,
    median,
    said,
    times,
    unknown,
)
from harness.report.names import level_name, point_name, store_name
from harness.report.quantities import quantity
from harness.results import Point, Results, grouped

RATE = "operations_per_s"


def answer(results: Results) -> Answer:
    """By threads where these vary, else by store."""
    points = measured(results.points(), RATE)
    if not points:
        return NOTHING
    if results.variant.parameters.get("target_per_s"):
        return _at_a_rate(results, points)
    return _over_threads(results, points) if len(results.variant.axes["threads"]) > 1 else _by_store(results, points)


def late_of(point: Point) -> str:
    """The 99th percentile to stand beside a throughput: that of the kind of operation that waits longest."""
    kinds = [f"{kind.lower()}_p99_us" for kind in client.KINDS]
    return max(kinds, key=lambda name: median(point, name) or 0.0)


def _by_store(results: Results, points: list[Point]) -> Answer:
    parts, shown = [], []
    for workload, of in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        ordered = sorted(of, key=lambda point: -(median(point, RATE) or 0.0))
        told = joined([f"{store_name(point.store)} {said(point, RATE, '1/s')}" for point in ordered])
        parts.append(f"{workload.partition(',')[0]}: {told}")
        shown += [Shown(point_name(results, point), point, RATE, late_of(point)) for point in of]
    return Answer(f"Operations per second, by workload: {'; '.join(parts)}.", shown, _no_figure(results))


def _at_a_rate(results: Results, points: list[Point]) -> Answer:
    """Of each workload how late the last of 100 operations are, of the kind that waits longest."""
    parts, shown = [], []
    for workload, of in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        ordered = sorted(of, key=lambda point: median(point, late_of(point)) or 0.0)
        told = joined([f"{store_name(point.store)} {said(point, late_of(point), 'µs')}" for point in ordered])
        parts.append(f"{workload.partition(',')[0]}: {told}")
        shown += [Shown(point_name(results, point), point, late_of(point)) for point in of]
    offered = quantity(float(results.variant.parameters["target_per_s"]), "1/s")
    sentence = f"99th percentile at {offered}, by workload: {'; '.join(parts)}."
    return Answer(sentence, shown, _no_figure(results), figure=1)


def _over_threads(results: Results, points: list[Point]) -> Answer:
    parts, shown = [], []
    groups = grouped(points, lambda point: point_name(results, point, without=("threads",)))
    for name, of in groups.items():
        curve = by_level(of, "threads", RATE)
        enough, first = grows_until(curve, RATE), curve[0]
        gain = (median(enough, RATE) or 0.0) / (median(first, RATE) or 1.0)
        still = " and may grow further" if enough is curve[-1] else ""
        parts.append(
            f"{name}: up to {level_name('threads', enough.levels['threads'])}{still}, {said(enough, RATE, '1/s')}, "
            f"{times(gain)} what {level_name('threads', first.levels['threads'])} "
            f"{'does' if first.levels['threads'] == 1 else 'do'}"
        )
        shown += [
            Shown(f"{name}, {level_name('threads', point.levels['threads'])}", point, RATE, late_of(point))
            for point in distinct((first, best(curve, RATE), curve[-1]))
        ]
    return Answer(f"{'; '.join(parts)}.", shown, _no_figure(results))


def _no_figure(results: Results) -> Finding:
    return unknown(results.campaign.source, "the source has no figure for these stores on this hardware")
