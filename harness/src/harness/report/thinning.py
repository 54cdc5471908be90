"""Curves of fewer points that look the same: what is published of a series."""

from collections.abc import Sequence

# A chart is not wider than twice as many points can be told apart.
MOST_POINTS = 240
# From here on places have one digit behind the point, before two.
FINE = 100
# Digits of a published value; an axis shows fewer. A panel of what a machine did is 150 pixels high.
DIGITS = 4
PANEL_DIGITS = 3

Curve = Sequence[tuple[float, float | None]]


def thin(curve: Curve, most: int = MOST_POINTS, digits: int = DIGITS) -> list[tuple[float, float | None]]:
    """At most about so many points: of each stretch the least, the greatest, and a gap if it has one, so that neither a
    stall nor a peak is lost."""
    if len(curve) <= most:
        return [_rounded(point, digits) for point in curve]
    length = -(-2 * len(curve) // most)
    kept: list[tuple[float, float | None]] = []
    for begin in range(0, len(curve), length):
        part = range(begin, min(begin + length, len(curve)))
        values = {number: value for number in part if (value := curve[number][1]) is not None}
        chosen = {min(values, key=lambda of: values[of]), max(values, key=lambda of: values[of])} if values else set()
        gaps = [number for number in part if curve[number][1] is None]
        kept += [_rounded(curve[number], digits) for number in sorted({*chosen, *gaps[:1]})]
    return kept


def shortened(value: float, digits: int = DIGITS) -> float:
    """A value with as many digits as are published. Where it can be it is whole: a file has no `.0` then."""
    return _whole(float(f"{value:.{digits}g}"))


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


def _rounded(point: tuple[float, float | None], digits: int) -> tuple[float, float | None]:
    x, y = point
    # No two points are nearer to each other than that, behind the first hundred seconds.
    place = round(float(x), 2 if abs(x) < FINE else 1)
    return _whole(place), None if y is None else shortened(y, digits)
