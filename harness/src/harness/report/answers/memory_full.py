"""What becomes of inserts once memory is used up."""

from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, joined, judged, median, said
from harness.report.names import level_name, store_name
from harness.results import Point, Results
from harness.rows import DIED
from harness.stores.embedded import Lmdb

RATE = "operations_per_s"
# What counts as the fall of the long run: what is left of the rate.
FALL = 0.01


def answer(results: Results) -> Answer:
    """Of each store how far it came, how much it kept up, and whether it died."""
    points = [point for point in results.points() if point.rows]
    if not points:
        return NOTHING
    durability = str(results.variant.parameters["durability"])
    parts = [_of(point, durability) for point in points]
    shown = [
        Shown(f"{store_name(of.store)}: inserts by {level_name('threads', of.levels['threads'])}", of, RATE)
        for of in points
    ]
    alive = [of for of in points if not died(of)]
    shown += [Shown(f"{store_name(of.store)}: of the worst 10 s", of, "least_per_s") for of in alive]
    timed = [of for of in alive if of.summary("longest_s")]
    shown += [Shown(f"{store_name(of.store)}: longest insert", of, "longest_s") for of in timed]
    shown += [Shown(f"{store_name(of.store)}: data written, times the memory", of, "memory_times") for of in points]
    given = results.variant.parameters
    return Answer(
        f"In {given['seconds']} s with {given['memory_mib']} MiB of memory {joined(parts)}.", shown, _finding(points)
    )


def _of(point: Point, durability: str) -> str:
    name, far = store_name(point.store), said(point, "memory_times", "1")
    if point.store == Lmdb.name and durability != "sync":
        name += ", whose inserts are all durable,"
    if died(point):
        return f"{name} dies with {far} times that in data"
    return (
        f"{name} inserts {said(point, RATE, '1/s')}, {said(point, 'least_per_s', '1/s')} in its worst 10 s, "
        f"and writes {far} times the memory"
    )


def _fate(point: Point, left: float) -> str:
    if died(point):
        return "dies"
    return "does not fall" if left > 1 - FALL else f"keeps {left:.{0 if left >= FALL else 1}%}"


def died(point: Point) -> bool:
    """Whether a store did not live to the end in every repetition."""
    return all(any(mark.startswith(DIED) for mark in row.marks) for row in point.rows)


def _finding(points: list[Point]) -> Finding:
    says = "inserts fall a hundredfold once memory is used up, or the process dies"
    left = {of.store: (median(of, "least_per_s") or 0.0) / (median(of, "first_per_s") or 1.0) for of in points}
    told = [f"{store_name(of.store)} " + _fate(of, left[of.store]) for of in points]
    why = f"of the rate of its first 10 s in its worst, {joined(told)}"
    return judged(says, points, why, lambda: all(died(of) or left[of.store] <= FALL for of in points))
