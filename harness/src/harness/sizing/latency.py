"""How late operations are on a node that is so busy: what was measured of it, and what was not."""

import statistics
from dataclasses import dataclass

from harness.sizing.model import Model
from harness.sizing.node import Rate
from harness.sizing.requirement import Requirement
from harness.sizing.ways import Way

# A node that does so much of what another does is as busy.
AS_BUSY = 0.9


@dataclass(frozen=True)
class Late:
    """The 99th percentile of a kind at the load of one node."""

    kind: str
    # Of clients that wait for each answer; None where it was not measured.
    closed_ms: float | None
    # Of requests that come at a rate of their own, and that rate on one node; None where nobody asked so.
    open_ms: float | None
    open_per_s: float | None
    limit_ms: float | None
    # The part that a node does of the most that it can, and the part at which requests came at their own rate.
    used: float
    open_used: float | None

    @property
    def is_as_busy(self) -> bool:
        """Whether nodes are about as busy as where requests came at their own rate."""
        return self.open_used is not None and self.used >= AS_BUSY * self.open_used

    @property
    def worst_ms(self) -> float | None:
        """The larger one of those that say something of nodes so busy."""
        known = (self.closed_ms, self.open_ms if self.is_as_busy else None)
        return max((of for of in known if of is not None), default=None)

    @property
    def is_over(self) -> bool:
        """Whether the limit may not be kept."""
        return self.limit_ms is not None and self.worst_ms is not None and self.worst_ms > self.limit_ms

    @property
    def guess(self) -> str:
        """Why a limit of the 99th percentile may not be kept; empty where nothing says so."""
        if self.limit_ms is None or self.open_ms is None or self.open_used is None or self.open_ms <= self.limit_ms:
            return f"{self.kind} may be later than {self.limit_ms:g} ms" if self.is_over else ""
        there = (
            f"{self.kind} that came at their own rate, {self.open_used:.0%} of what a node does, had "
            f"{self.open_ms:,.0f} ms at the 99th percentile, more than {self.limit_ms:g}"
        )
        return there if self.is_as_busy else f"{there}; nodes as busy as here were measured with waiting clients alone"


def late(model: Model, rate: Rate, way: Way, asked: Requirement, used: float) -> Late:
    """Of one kind, on a node that does the used part of the most that it can."""
    limit = asked.p99_us(rate.kind)
    closed = [
        p99
        for curve in rate.curves
        if (best := curve.within(limit)) and (p99 := curve.p99_us(best[0].per_s * used)) is not None
    ]
    offered = [of for of in model.open_loop(way, rate.kind) if rate.kind in of.p99_us]
    worst = max(offered, key=lambda of: of.p99_us[rate.kind]) if offered else None
    return Late(
        rate.kind,
        statistics.median_high(closed) / 1000 if closed else None,
        worst.p99_us[rate.kind] / 1000 if worst else None,
        worst.per_s if worst else None,
        None if limit is None else limit / 1000,
        used,
        worst.per_s / rate.measured_per_s if worst else None,
    )
