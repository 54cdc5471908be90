"""Curves of fewer points that look the same: what is published of a series."""

from collections.abc import Sequence

# A chart is not wider than twice as many points can be told apart.
MOST_POINTS = 240
# Digits of a published value; an axis shows fewer.
DIGITS = 4

Curve = Sequence[tuple[float, float | None]]


def thin(curve: Curve, most: int = MOST_POINTS) -> list[tuple[float, float | None]]:
    """At most about so many points: of each stretch the least, the greatest, and a gap if it has one, so that neither a
    stall nor a peak is lost."""
    if len(curve) <= most:
        return [_rounded(point) for point in curve]
    length = -(-2 * len(curve) // most)
    kept: list[tuple[float, float | None]] = []
    for begin in range(0, len(curve), length):
        part = range(begin, min(begin + length, len(curve)))
        values = {number: value for number in part if (value := curve[number][1]) is not None}
        chosen = {min(values, key=lambda of: values[of]), max(values, key=lambda of: values[of])} if values else set()
        gaps = [number for number in part if curve[number][1] is None]
        kept += [_rounded(curve[number]) for number in sorted({*chosen, *gaps[:1]})]
    return kept


def shortened(value: float) -> float:
    """A value with as many digits as are published."""
    return float(f"{value:.{DIGITS}g}")


def _rounded(point: tuple[float, float | None]) -> tuple[float, float | None]:
    x, y = point
    return round(x, 2), None if y is None else shortened(y)
