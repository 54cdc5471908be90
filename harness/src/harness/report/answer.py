"""What a campaign found, in a sentence: the first thing that a report shows."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from harness.results import Point


class Agreement(Enum):
    """Whether a document's finding holds here."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNKNOWN = "cannot say"


@dataclass(frozen=True)
class Finding:
    """What the document says whose evaluation is repeated, and whether that was found here."""

    says: str
    agreement: Agreement
    # With numbers, and why nothing can be said where that is so.
    why: str


@dataclass(frozen=True)
class Shown:
    """A value of the small table, of one point."""

    name: str
    point: Point
    metric: str
    # The latency beside a throughput, by the metric's name; where there is none, who waits stands in the name.
    beside: str = ""


@dataclass(frozen=True)
class Answer:
    """The answer to a campaign's question."""

    # One sentence, with numbers.
    sentence: str
    shown: Sequence[Shown] = field(default=())
    finding: Finding | None = None
    # Which of the figures goes with it.
    figure: int = 0
