"""What a figure shows, apart from how it is drawn."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from harness.report.names import store_colour
from harness.results import Point, Results, grouped


class Mark(NamedTuple):
    """A point of a series, with the ends of the interval around it."""

    x: float
    y: float
    low: float
    high: float
    # Drawn hollow: measured too seldom, with too wide an interval, while it had not settled, or beside others.
    doubtful: bool = False


class Look(Enum):
    """What a series is, which decides its colour and dashes."""

    # Measured here: the colour of its store, with intervals.
    OURS = "ours"
    # What ours is held against, measured in the same run.
    CEILING = "ceiling"
    # Published by others, on other hardware.
    PUBLISHED = "published"
    # Said of ours by a law that was not fitted to it.
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Series:
    """Points that belong together, in the order of x."""

    name: str
    marks: tuple[Mark, ...]
    look: Look = Look.OURS
    # Of ours, whose it is: a store or engine has one colour in every figure.
    store: str = ""
    # Whether what was measured ended with the last mark, against its will.
    died: bool = False


@dataclass(frozen=True)
class Figure:
    """Series over two axes. Where `categories` has names, x counts them from 0. Latencies are in µs, and shown
    in ms."""

    title: str
    note: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    # A horizontal line to hold the series against, and what it is.
    level: tuple[float, str] | None = None
    categories: tuple[str, ...] = ()
    # Whether x is a percentile: the axis is stretched towards 100, where latencies are of interest.
    percentiles: bool = False
    # Parts of the x axis that are shaded, for the reason that the note gives.
    spans: tuple[tuple[float, float], ...] = ()
    # Places of the x axis that are marked by a line, and what begins there.
    moments: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True)
class Cell:
    """One value of a heat map, and how it is written."""

    row: str
    column: str
    value: float
    text: str
    # Set off from the others, for the reason that the figure's note gives.
    strong: bool = False


@dataclass(frozen=True)
class HeatMap:
    """A value for each pair of a row and a column; pairs without one stay empty."""

    title: str
    note: str
    x_title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[Cell, ...]


def ranked(figure: Figure) -> Iterator[tuple[Series, int]]:
    """The series that have marks, each with how many before it look the same: these differ in dash and shape."""
    counts: Counter[tuple[Look, str]] = Counter()
    for series in figure.series:
        if series.marks:
            same = (series.look, store_colour(series.store))
            yield series, counts[same]
            counts[same] += 1


def mark_of(point: Point, x: float, metric: str) -> Mark | None:
    """A metric's median at a place, with its interval; None where the point has no value of it."""
    summary = point.summary(metric)
    if summary is None:
        return None
    return Mark(x, summary.median, summary.low, summary.high, is_doubtful(point, metric))


def is_doubtful(point: Point, metric: str) -> bool:
    """Whether a value is not to be quoted."""
    summary = point.summary(metric)
    return summary is None or not summary.sufficient or bool(point.doubts())


def known_marks(xs: Iterable[tuple[float, float | None]], doubtful: bool = False) -> tuple[Mark, ...]:
    """Marks without intervals, of those places of which a value is known."""
    return tuple(Mark(x, y, y, y, doubtful) for x, y in xs if y is not None)


def point_series(name: str, points: Sequence[Point], axis: str, metric: str, store: str = "") -> Series:
    """A metric's medians over an axis, with their intervals; points without a value are left out, and the report
    lists them as failed."""
    marks = [mark_of(point, float(point.levels[axis]), metric) for point in points]
    return Series(name, tuple(sorted(filter(None, marks))), store=store or store_of(points))


def category_series(
    name: str, points: Sequence[Point], axis: str, names: Sequence[str], metric: str, store: str = ""
) -> Series:
    """A metric's medians over the names of an axis's levels."""
    marks = [mark_of(point, float(names.index(str(point.levels[axis]))), metric) for point in points]
    return Series(name, tuple(filter(None, marks)), store=store or store_of(points))


def store_of(points: Sequence[Point]) -> str:
    """Whose points these are: the engine of a table, or the store."""
    return str(points[0].levels.get("engine", points[0].store)) if points else ""


def percentile_figures(
    points: Sequence[Point], group: Callable[[Point], str], name: Callable[[Point], str]
) -> list[Figure]:
    """A figure for each group of points and kind of operation: latency against percentile, a curve for each point."""
    figures = []
    for title, members in grouped(points, group).items():
        kinds = sorted({kind for point in members for row in point.rows for kind in row.percentiles_us})
        for kind in kinds:
            series = tuple(_curve(name(point), point, kind) for point in members)
            figures.append(
                Figure(
                    f"Latency of {kind} by percentile, {title}",
                    "At each percentile the median over repetitions, and their least and most.",
                    "percentile",
                    "µs",
                    tuple(of for of in series if of.marks),
                    y_log=True,
                    percentiles=True,
                )
            )
    return figures


def _curve(name: str, point: Point, kind: str) -> Series:
    curves = [dict(row.percentiles_us[kind]) for row in point.rows if kind in row.percentiles_us]
    marks = []
    for percent in sorted({percent for curve in curves for percent in curve}):
        found = [curve[percent] for curve in curves if percent in curve]
        marks.append(Mark(percent, statistics.median(found), min(found), max(found), bool(point.doubts())))
    return Series(name, tuple(marks), store=store_of([point]))


def flat_note(results: Results) -> str:
    """What a caption may say of the parts that were measured: how many points had settled."""
    points = [point for point in results.points() if point.rows]
    unsettled = sum(1 for point in points if not point.is_flat())
    if not unsettled:
        return "Each value is of the part of its run in which throughput was flat."
    if unsettled == len(points):
        return "At no point did throughput settle: each value is of the last 20 s of its run."
    return (
        f"Of {len(points)} points {len(points) - unsettled} had settled, and their value is of that part; the others' "
        "is of the last 20 s of their run."
    )
