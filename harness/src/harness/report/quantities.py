"""Values in a reader's units: 65.6 K/s, 1.9 ms, 0.95."""

from harness.statistics import Summary

# By the unit of a metric: what it is multiplied by, and what is written behind it.
_UNITS = {"µs": (1e-3, " ms"), "s": (1, " s"), "B": (1, "B"), "1/s": (1, "/s"), "1": (1, ""), "": (1, "")}
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "K"))
# Below this a count of seconds is no longer read as one number.
_MINUTE = 60.0


def quantity(value: float, unit: str) -> str:
    """A value with its unit, three digits of it."""
    times, behind = _UNITS.get(unit, (1, f" {unit}"))
    value *= times
    if unit in ("1/s", "B") or (unit == "" and abs(value) >= 1e5):
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{digits(value / size)} {prefix}{behind.strip()}".rstrip()
    return f"{digits(value)}{' ' if unit == 'B' else ''}{behind}"


def digits(value: float) -> str:
    """Three digits, or all before the point where there are more."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:.2g}"


def interval(summary: Summary, unit: str) -> str:
    """From where to where, with one unit; or why there is no interval."""
    if summary.interval is None:
        return "measured once"
    low, high = quantity(summary.low, unit), quantity(summary.high, unit)
    number, _, behind = low.partition(" ")
    return f"{number} to {high}" if behind and high.endswith(f" {behind}") else f"{low} to {high}"
