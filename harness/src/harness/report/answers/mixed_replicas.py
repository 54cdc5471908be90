"""Whether replicas on different engines read as the engine that reads best, and what writes cost each of them."""

from collections.abc import Sequence

from harness.experiments.mixed_replicas import BEHIND, NUMBERS
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, find, joined, judged, measured, median, said, times, unknown
from harness.report.names import level_name, point_name, store_name
from harness.report.quantities import digits
from harness.results import Point, Results, grouped
from harness.stores.cassandra import MIXED

RATE = "operations_per_s"
COST = "cpu_us"
LATE = "read_mean_us"
# Of what the engine does that reads best, what mixed engines may lose.
BAR = 0.20
READ_HEAVY = "read-heavy"


def answer(results: Results) -> Answer:
    """Of each mix the clusters from the best to the worst, and of the mixed one who has served the reads."""
    points = measured(results.points(), RATE)
    if not points:
        return NOTHING
    offered = bool(results.variant.parameters["target_per_s"])
    parts = []
    for level, of_level in grouped(points, lambda point: str(point.levels["level"])).items():
        for mix, of in grouped(of_level, lambda point: str(point.levels["mix"])).items():
            ordered = sorted(of, key=lambda point: _badness(point, offered))
            parts.append(f"{level_name('mix', mix)} at {level}: {joined([_told(point, offered) for point in ordered])}")
    what = (
        "mean read, and processor time for an operation"
        if offered
        else "throughput, and processor time for an operation"
    )
    shown = [Shown(point_name(results, of), of, COST if offered else RATE, "read_p99_us") for of in points]
    sentence = f"{what}: {'; '.join(parts)}{_who(points)}."
    # At a rate that all can do, throughput is no answer.
    return Answer(f"{sentence[0].upper()}{sentence[1:]}", shown, _finding(points, offered), figure=2 if offered else 0)


def _badness(point: Point, offered: bool) -> float:
    return (median(point, LATE) or 0.0) if offered else -(median(point, RATE) or 0.0)


def _told(point: Point, offered: bool) -> str:
    value = said(point, LATE, "µs") if offered else said(point, RATE, "1/s")
    return f"{store_name(point.store)} {value} ({_microseconds(point, COST)})"


def _microseconds(point: Point, metric: str) -> str:
    value = median(point, metric)
    return "not measured" if value is None else f"{digits(value)} µs"


def _who(points: Sequence[Point]) -> str:
    """Which engine serves most reads of those that mostly read, and what a write costs each."""
    mixed = find(points, store=MIXED, mix=READ_HEAVY)
    if mixed is None:
        return ""
    engines = list(zip(NUMBERS, BEHIND[MIXED], strict=True))
    reads = [f"{store_name(engine)} {median(mixed, f'reads_{node}') or 0.0:.0f} %" for node, engine in engines]
    writes = [f"{store_name(engine)} {_microseconds(mixed, f'node_{node}_write_us')}" for node, engine in engines]
    return (
        f". Of mixed engines' {level_name('mix', READ_HEAVY)}, reads are served by {joined(reads)}, and a write takes "
        f"{joined(writes)} within its node"
    )


def _finding(points: Sequence[Point], offered: bool) -> Finding:
    """By throughput of a closed loop; where all are offered the same, by the mean latency of a read."""
    says = f"mixed engines read within {BAR:.0%} of the engine that reads best"
    level = points[0].levels["level"]
    of_level = [point for point in points if point.levels["level"] == level and point.levels["mix"] == READ_HEAVY]
    mixed = find(of_level, store=MIXED)
    alone = [point for point in of_level if point.store != MIXED and _badness(point, offered)]
    if mixed is None or not alone:
        return unknown(says, "mostly reads were not measured both of mixed engines and of one alone")
    best = min(alone, key=lambda point: _badness(point, offered))
    ratio = _badness(mixed, offered) / _badness(best, offered)
    cost = (median(mixed, COST) or 0.0) / (median(best, COST) or 1.0)
    what = "a read takes" if offered else "throughput is"
    why = (
        f"with {level_name('mix', READ_HEAVY)} {what} {times(ratio)} that of {store_name(best.store)} alone, and an "
        f"operation {times(cost)} the processor time"
    )
    return judged(says, [mixed, best], why, lambda: ratio <= 1 + BAR if offered else ratio >= 1 - BAR)
