"""Whether a throughput has settled: a store that is still warming up, filling its memory or falling behind with its
compaction must not be quoted as if it went on like that."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.ycsb_output import Status

WINDOW_SECONDS = 10.0
# Two windows in a row that differ by at most this part of the larger one are flat.
FLAT_FRACTION = 0.05
# A throughput that is flat at first and then leaves that level by more than this part of the larger one has not settled
# there: windows that differ by a little each can lead anywhere.
STAYED_FRACTION = 0.10
# How the mark of a point begins that was not.
NOT_FLAT = "not flat"


@dataclass(frozen=True)
class Steady:
    """The part of a run that counts."""

    from_s: float
    to_s: float
    rate_per_s: float
    flat: bool


def steady(status: Sequence[Status]) -> Steady | None:
    """From the first two flat windows at whose level the run also ends, to its end; of a run without such the last two
    windows, or the one that there is, not flat; None for a run shorter than a window."""
    if len(status) < 2:
        return None
    began, ended = status[0].at, status[-1].at
    # A status line that is late by a little does not cost a window.
    count = int((ended - began + WINDOW_SECONDS / 20) / WINDOW_SECONDS)
    edges = [min(began + number * WINDOW_SECONDS, ended) for number in range(count + 1)]
    done = [_operations_at(status, edge) for edge in edges]
    rates = [after - before for before, after in itertools.pairwise(done)]
    end = statistics.fmean(rates[-2:]) if rates else 0.0
    for first, (one, other) in enumerate(itertools.pairwise(rates)):
        if _near(one, other, FLAT_FRACTION) and _near((one + other) / 2, end, STAYED_FRACTION):
            return _from(status, edges[first], done[first], flat=True)
    last = max(0, count - 2)
    return _from(status, edges[last], done[last], flat=False) if count >= 1 else None


def _near(one: float, other: float, fraction: float) -> bool:
    """Whether two rates are above zero and differ by at most this part of the larger one."""
    return one > 0 and other > 0 and abs(one - other) <= fraction * max(one, other)


def _from(status: Sequence[Status], second: float, operations: float, flat: bool) -> Steady:
    last = status[-1]
    return Steady(second, last.at, (last.operations - operations) / (last.at - second), flat)


def _operations_at(status: Sequence[Status], second: float) -> float:
    """Operations done until a second between two status lines, as if they had been done evenly."""
    for before, after in itertools.pairwise(status):
        if before.at <= second <= after.at and after.at > before.at:
            part = (second - before.at) / (after.at - before.at)
            return before.operations + part * (after.operations - before.operations)
    return float(status[-1].operations)
