"""What a sizing comes to in a sentence: the cheapest row, how late it is, and how far off predictions were."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.scaling import MOST_ERROR
from harness.sizing.fits import HeldOut
from harness.sizing.latency import Late
from harness.sizing.solve import Answer, Sizing


@dataclass(frozen=True)
class Trial:
    """What predictions of a campaign's held-out points came to."""

    source: str
    what: str
    points: int
    median: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether all were within what an answer may be off by."""
        return self.most <= MOST_ERROR

    @property
    def words(self) -> str:
        """The verdict: within the bar, or that nobody can say."""
        return f"within {MOST_ERROR:.0%}" if self.holds else f"cannot be said within {MOST_ERROR:.0%}"


def trials(held_out: Iterable[HeldOut]) -> list[Trial]:
    """By campaign and what was held out."""
    groups: dict[tuple[str, str], list[float]] = {}
    for of in held_out:
        groups.setdefault((of.source, of.what), []).append(of.error)
    return [Trial(*key, len(of), statistics.median(of), max(of)) for key, of in groups.items()]


def coverage(held_out: Iterable[HeldOut]) -> list[str]:
    """How often what a campaign found lay within the band that the others gave."""
    inside = [of.in_band for of in held_out if of.in_band is not None]
    if not inside:
        return []
    return [f"{sum(inside)} of {len(inside)} rates lay within the 80 % band that the other campaigns give"]


def cheapest(sizing: Sizing) -> list[str]:
    """Of each level the cheapest row, and whether that is sure."""
    return [_cheapest(level, [of for of in sizing.answers if of.level == level]) for level in sizing.requirement.levels]


def _cheapest(level: str, answers: Sequence[Answer]) -> str:
    known = [of for of in answers if of.refused is None]
    if not known:
        return f"{level}: no answer, every row is refused"
    kept = [of for of in known if not any(it.is_over for it in of.late)]
    best = min(kept or known, key=lambda of: of.usd)
    over = "" if kept else "; no row keeps the 99th percentile"
    dropped = (
        "; dearer than one whose 99th percentile is over the limit" if best.usd > min(of.usd for of in known) else ""
    )
    rivals = [of for of in kept or known if of is not best and of.least_usd <= best.most_usd]
    said = f"{level}: the cheapest is {best.nodes:,} × {_name(best)}, {best.usd:,.0f} USD"
    if not rivals:
        return f"{said}: its band lies below all others{over}{dropped}"
    return (
        f"{said}, by the middle of its band: {_name(min(rivals, key=lambda of: of.usd))} may be cheaper{over}{dropped}"
    )


def _name(of: Answer) -> str:
    return f"{of.node}, {of.way.name}"


def late_text(late: Sequence[Late]) -> str:
    """The latest kind's percentile; `*` where requests came at their own rate, `!` over its limit."""
    known = [of for of in late if of.worst_ms is not None]
    if not known:
        return "?"
    over = [of for of in known if of.is_over] or known
    worst = max(over, key=lambda of: of.worst_ms or 0.0)
    own = "*" if worst.open_ms is not None and worst.worst_ms == worst.open_ms else ""
    return f"{worst.worst_ms:.3g}{own}{'!' if worst.is_over else ''}"
