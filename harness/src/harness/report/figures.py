"""What a figure shows, apart from how it is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from harness.results import Point

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


@dataclass(frozen=True)
class Series:
    """Points that belong together, joined by a line in the order of x."""

    name: str
    marks: tuple[Mark, ...]
    look: Look = Look.OURS


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
