"""The law of scaling, drawn: throughput by number of clients, and what a law says of each number that was fitted to all
the others."""

from collections.abc import Mapping, Sequence

from harness.report.figure import Figure, Look, Series, known_marks, point_series
from harness.results import Point
from harness.scaling import LEAST_POINTS, errors, held_out, verdict


def law_figures(
    title: str, groups: Mapping[str, Sequence[Point]], axis: str = "threads", metric: str = "operations_per_s"
) -> list[Figure]:
    """A figure for each group that was measured at enough numbers of clients, which the axis counts; none for the
    others."""
    drawn = []
    for name, points in groups.items():
        per_s = {float(point.levels[axis]): of.median for point in points if (of := point.summary(metric))}
        if len(per_s) < LEAST_POINTS:
            continue
        left_out = held_out(per_s)
        off = errors(left_out)
        predicted = known_marks((of.clients, of.law_per_s) for of in left_out)
        drawn.append(
            Figure(
                f"{title}, {name}: each number of clients predicted from the others",
                "Crosses: Gunther's universal scalability law, fitted without the point below it. In the median it is "
                f"off by {off.law:.0%}, at most by {off.law_most:.0%}; carrying the point before forward is off by "
                f"{off.carried:.0%}, scaling it by the clients by {off.linear:.0%}: {verdict(off).words}.",
                "clients",
                "operations/s",
                (point_series(name, points, axis, metric), Series("predicted", predicted, Look.PREDICTED)),
                x_log=True,
            )
        )
    return drawn
