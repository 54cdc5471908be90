"""A cluster that grows: what each further node gains, and what clients notice of its joining."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from harness.experiments.grow import KINDS, P99_SECONDS
from harness.report.figure import Figure, Look, Series, known_marks, point_series
from harness.report.names import store_name
from harness.results import Point, Results, grouped
from harness.rows import Row
from harness.scaling import LEAST_POINTS, errors, held_out, verdict

RATE = "operations_per_s"
# A point at which less than this part of the median was answered is an outage.
OUTAGE_PART = 0.10
NOTE = "Of the time when nobody joined."


def figures(results: Results) -> Sequence[Figure]:
    """Throughput by nodes and over time, then latencies and what was sent."""
    kind = KINDS[str(results.variant.parameters["workload"])]
    engines = grouped(results.points(), lambda point: str(point.levels["engine"]))
    others = [
        Figure(
            title,
            NOTE,
            "nodes",
            unit,
            tuple(point_series(store_name(engine), of, "nodes", metric) for engine, of in engines.items()),
        )
        for title, unit, metric in (
            ("99th percentile by nodes", "µs", f"{kind}_p99_us"),
            ("Bytes sent to each node that joined", "bytes", "moved_bytes"),
        )
    ]
    return [_by_nodes(engines), *_over_time(results), *others]


def _by_nodes(engines: Mapping[str, Sequence[Point]]) -> Figure:
    """Throughput by nodes, and what the law of scaling says of the most nodes by all the others."""
    series, said = [], [NOTE]
    for engine, points in engines.items():
        series.append(point_series(store_name(engine), points, "nodes", RATE))
        per_s = {float(point.levels["nodes"]): of.median for point in points if (of := point.summary(RATE))}
        if len(per_s) >= LEAST_POINTS:
            last = held_out(per_s)[-1]
            predicted = known_marks([(last.clients, last.law_per_s)])
            series.append(Series(f"{store_name(engine)}, predicted from fewer nodes", predicted, Look.PREDICTED))
            said.append(
                f"Cross: a law fitted to fewer nodes, off by {last.error(last.law_per_s):.0%} (carrying the point "
                "before "
                f"forward by {last.error(last.carried_per_s):.0%}, scaling it by {last.error(last.linear_per_s):.0%}): "
                f"{verdict(errors([last])).words.partition(':')[0]}."
            )
    return Figure("Throughput by nodes", " ".join(said), "nodes", "operations/s", tuple(series))


def _over_time(results: Results) -> list[Figure]:
    """For each engine throughput and 99th percentile from the first node to the last, of each repetition."""
    drawn = []
    for engine, points in grouped(results.points(), lambda point: str(point.levels["engine"])).items():
        rates, slowest, spans = [], [], []
        for number, rows in enumerate(itertools.zip_longest(*(point.rows for point in points)), 1):
            known = [row for row in rows if row is not None and row.series]
            start = min((row.series[0][0] for row in known), default=0.0)
            name = f"repetition {number}"
            rates.append(_line(name, engine, start, [row.series for row in known]))
            slowest.append(_line(name, engine, start, [row.p99_us for row in known]))
            if number == 1:
                spans = [_joining(row, start) for row in known if "join_s" in row.values]
        note = "Shaded: a node joins, from being told to until it answers"
        note += " (first repetition)." if len(rates) > 1 else "."
        note += _outages(rates[:1], spans)
        axis = "seconds since the first operation"
        drawn.append(
            Figure(
                f"{store_name(engine)}: throughput while nodes join",
                note,
                axis,
                "operations/s",
                tuple(rates),
                spans=tuple(spans),
            )
        )
        if any(series.marks for series in slowest):
            title, late = (
                f"{store_name(engine)}: 99th percentile while nodes join",
                f"{note} Of {P99_SECONDS:g} s each.",
            )
            drawn.append(Figure(title, late, axis, "µs", tuple(slowest), y_log=True, spans=tuple(spans)))
    return drawn


def _line(name: str, engine: str, start: float, parts: Iterable[Sequence[tuple[float, float]]]) -> Series:
    """What follows each other in one line, in seconds since a second of the run."""
    line = {second - start: value for part in parts for second, value in part}
    return Series(name, known_marks(sorted(line.items())), store=engine)


def _outages(rates: Sequence[Series], spans: Sequence[tuple[float, float]]) -> str:
    """Of the points of a line at which hardly anything was answered, how many lie in the shaded times, and how many
    do not: an outage may begin only once a node has joined."""
    values = sorted(mark.y for series in rates for mark in series.marks)
    usual = values[len(values) // 2] if values else 0.0
    out = [mark.x for series in rates for mark in series.marks if mark.y < OUTAGE_PART * usual]
    inside = sum(1 for x in out if any(began <= x <= ended for began, ended in spans))
    if not out:
        return ""
    return (
        f" At {len(out)} of {len(values)} points of the line less than {OUTAGE_PART:.0%} of the usual was answered: "
        f"{inside} in the shaded times, {len(out) - inside} outside of them."
    )


def _joining(row: Row, start: float) -> tuple[float, float]:
    began = row.series[0][0] - start
    return began, began + row.values["join_s"]
