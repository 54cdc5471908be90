"""What a figure shows, apart from how it is drawn."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from harness.results import Point, grouped

# x, y, and the ends of the interval around y.
Mark = tuple[float, float, float, float]


class Look(Enum):
    """What a series is, which decides its colour and dashes."""

    # Measured here: a colour of its own, with intervals.
    OURS = "ours"
    # What ours is held against, measured in the same run.
    CEILING = "ceiling"
    # Published by others, on other hardware.
    PUBLISHED = "published"
    # Said of ours by a law that was not fitted to it.
    PREDICTED = "predicted"


@dataclass(frozen=True)
class Series:
    """Points that belong together, joined by a line in the order of x."""

    name: str
    marks: tuple[Mark, ...]
    look: Look = Look.OURS
    # Whether what was measured ended with the last mark, against its will.
    died: bool = False


@dataclass(frozen=True)
class Figure:
    """Series over two axes. Where `categories` has names, x counts them from 0, and ours are bars."""

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


def point_series(name: str, points: Sequence[Point], axis: str, metric: str) -> Series:
    """A metric's medians over an axis, with their intervals; points without a value are left out, and the report
    lists them as failed."""
    marks = []
    for point in points:
        if summary := point.summary(metric):
            half = summary.half_width or 0.0
            mark = (summary.median, summary.median - half, summary.median + half)
            marks.append((float(point.levels[axis]), *mark))
    return Series(name, tuple(sorted(marks)))


def category_series(name: str, points: Sequence[Point], axis: str, names: Sequence[str], metric: str) -> Series:
    """A metric's medians as bars over the names of an axis's levels."""
    marks = []
    for point in points:
        if summary := point.summary(metric):
            half = summary.half_width or 0.0
            position = float(names.index(str(point.levels[axis])))
            marks.append((position, summary.median, summary.median - half, summary.median + half))
    return Series(name, tuple(marks))


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
        marks.append((percent, statistics.median(found), min(found), max(found)))
    return Series(name, tuple(marks))
