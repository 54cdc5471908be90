"""What the answers share: values as words, where a curve stops growing, and when nothing can be said."""

from collections.abc import Callable, Iterable, Sequence

from harness.report.answer import Agreement, Answer, Finding
from harness.report.quantities import digits, quantity
from harness.results import Point
from harness.statistics import LEAST_VALUES

# More than this is a gain; less is what two runs differ by.
GAIN_FRACTION = 0.10

NOTHING = Answer("Nothing is measured yet.")


def median(point: Point | None, metric: str) -> float | None:
    """A metric's median; None where the point, or its value, is missing."""
    summary = point.summary(metric) if point else None
    return summary.median if summary else None


def said(point: Point | None, metric: str, unit: str) -> str:
    """A metric's median with its unit."""
    value = median(point, metric)
    return "not measured" if value is None else quantity(value, unit)


def measured(points: Iterable[Point], metric: str) -> list[Point]:
    """Those points that have a value."""
    return [point for point in points if median(point, metric) is not None]


def by_level(points: Iterable[Point], axis: str, metric: str) -> list[Point]:
    """The points that have a value, in the order of an axis."""
    return sorted(measured(points, metric), key=lambda point: float(point.levels[axis]))


def grows_until(points: Sequence[Point], metric: str) -> Point:
    """The first of the points, in their order, that all later ones exceed by no more than a gain."""
    values = [median(point, metric) or 0.0 for point in points]
    for number, value in enumerate(values):
        if all(later <= (1 + GAIN_FRACTION) * value for later in values[number + 1 :]):
            return points[number]
    return points[-1]


def best(points: Iterable[Point], metric: str) -> Point:
    """The point with the highest median."""
    return max(points, key=lambda point: median(point, metric) or 0.0)


def distinct(points: Iterable[Point]) -> list[Point]:
    """The points, each once."""
    return list({id(point): point for point in points}.values())


def find(points: Iterable[Point], **levels: object) -> Point | None:
    """The point at some levels, among them `store`."""
    for point in points:
        known = {"store": point.store, **point.levels}
        if all(known.get(axis) == level for axis, level in levels.items()):
            return point
    return None


def times(value: float) -> str:
    """A ratio, as in "2.7 times"."""
    return f"{digits(value)} times"


def joined(words: Sequence[str]) -> str:
    """An enumeration: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def unknown(says: str, why: str) -> Finding:
    """A finding of which nothing can be said here."""
    return Finding(says, Agreement.UNKNOWN, why)


def judged(says: str, points: Sequence[Point], why: str, holds: Callable[[], bool]) -> Finding:
    """Whether a finding holds, by points that may be quoted; where one may not be, nothing is said."""
    if doubt := _doubt(points):
        return unknown(says, f"{why}; {doubt}")
    return Finding(says, Agreement.AGREES if holds() else Agreement.DIFFERS, why)


def _doubt(points: Sequence[Point]) -> str:
    seldom = sum(1 for point in points if len(point.runs) < LEAST_VALUES)
    if seldom:
        once = all(len(point.runs) <= 1 for point in points)
        return "measured once" if once else f"{seldom} of {len(points)} points were measured fewer than 3 times"
    unsettled = sum(1 for point in points if not point.is_flat())
    return f"{unsettled} of {len(points)} points had not settled" if unsettled else ""
