"""How long a number of operations takes, by the number of clients that do them."""

from collections.abc import Sequence

from harness.report.answer import Answer, Shown
from harness.report.answers.cells import late_of
from harness.report.answers.common import GAIN_FRACTION, by_level, joined, judged, median, said
from harness.report.names import level_name, point_name
from harness.results import Point, Results, grouped

SECONDS = "execution_s"
# That of the seconds, behind those of throughput and latency over clients.
FIGURE = 2


def answer(results: Results, points: Sequence[Point]) -> Answer:
    """Of each kind and engine the number of clients from which on more take no less time."""
    operations = int(results.variant.parameters["operations"])
    parts, shown, stops = [], [], []
    for workload, of in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        told = []
        for name, cells in grouped(of, lambda point: point_name(results, point, ("threads", "workload"))).items():
            curve = by_level(cells, "threads", SECONDS)
            enough = _shortest_from(curve)
            told.append(
                f"{name} {said(curve[0], SECONDS, 's')} by {level_name('threads', curve[0].levels['threads'])} and "
                f"{said(enough, SECONDS, 's')} {'from' if enough is not curve[-1] else 'by'} {enough.levels['threads']}"
                f"{' on' if enough is not curve[-1] else ', and may take less by more'}"
            )
            stops.append(enough is not curve[-1])
            shown += [Shown(point_name(results, point), point, SECONDS, late_of(point)) for point in curve]
        parts.append(f"{operations:,} {workload} take {joined(told)}")
    finding = judged(
        "execution time falls as clients are added, and stays once throughput is saturated",
        points,
        f"{sum(stops)} of {len(stops)} curves stay from a number of clients on",
        lambda: all(stops),
    )
    return Answer(f"{'; '.join(parts)}.", shown, finding, figure=FIGURE)


def _shortest_from(curve: Sequence[Point]) -> Point:
    """The first point that all later ones undercut by no more than a gain."""
    seconds = [median(point, SECONDS) or 0.0 for point in curve]
    for number, value in enumerate(seconds):
        if all(later >= (1 - GAIN_FRACTION) * value for later in seconds[number + 1 :]):
            return curve[number]
    return curve[-1]
