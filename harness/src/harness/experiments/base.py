"""What every kind of experiment says of itself: what a campaign may set, which commands one run takes, and which
values come out. Nothing here starts a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.fields import Field, Value

if TYPE_CHECKING:
    from harness.plan import Run
    from harness.report.figures import Figure
    from harness.results import Results


@dataclass(frozen=True)
class Place:
    """Where a run may write, and the programs that it may call."""

    # The store's files: removed when the run ends, however it ends.
    scratch: Path
    # What is kept: logs, histograms, the programs' own results.
    kept: Path
    # The checkout that the programs belong to.
    checkout: Path
    aiodb: Path


@dataclass(frozen=True)
class Step:
    """One command of a run, whose standard output is kept as `NAME.out` and whose standard error as `NAME.log`."""

    name: str
    command: tuple[str, ...]
    # After this the command is taken to hang: it is stopped, and what it measures has failed.
    seconds_at_most: float
    # The points that it measures; empty for preparation, without which nothing after it can be measured.
    points: tuple[Mapping[str, Value], ...] = ()


@dataclass(frozen=True)
class Service:
    """A server that a run needs: started before its steps and stopped after them."""

    name: str
    command: tuple[str, ...]
    # Whether it answers; asked until it does.
    ready: Callable[[], bool]
    seconds_to_start: float


@dataclass(frozen=True)
class Finished:
    """A step that ended by itself and without an error."""

    step: Step
    # Its whole standard output.
    output: str
    # Lines of its standard error, with seconds since the run began.
    log: tuple[tuple[float, str], ...]
    # The same clock.
    began_s: float
    ended_s: float


class BadOutputError(Exception):
    """A step ended well, but what it printed cannot be its result."""


@dataclass(frozen=True)
class Row:
    """What one run found at one point."""

    levels: Mapping[str, Value]
    # By name, each with its unit in the name.
    values: Mapping[str, float]
    # When within the run this was measured, in seconds; for the resources beside it.
    window_s: tuple[float, float]
    # The most that the device gave in the same run, operations/s, where that was measured.
    ceiling_per_s: float | None = None
    # What a reader must know: `not flat`, a fallback.
    marks: tuple[str, ...] = ()
    # Throughput over time within the window: seconds since the run began, operations/s.
    series: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Metric:
    """One value of the rows that the report shows."""

    name: str
    title: str
    unit: str
    # Whether its interval decides if the campaign is sufficient.
    main: bool = False


@dataclass(frozen=True)
class Notes:
    """How this kind of experiment measures: said in every report."""

    durability: str
    latency: str
    method: tuple[str, ...] = field(default=())


class Experiment(ABC):
    """One kind of experiment. Its objects hold nothing: all that varies is in the run."""

    name: ClassVar[str]
    stores: ClassVar[tuple[str, ...]]
    phases: ClassVar[tuple[str, ...]]
    axes: ClassVar[Mapping[str, Field]]
    # Axes whose levels are all measured in one run, because loading a store for each would take most of the time.
    swept: ClassVar[frozenset[str]] = frozenset()
    parameters: ClassVar[Mapping[str, Field]]
    metrics: ClassVar[tuple[Metric, ...]]
    notes: ClassVar[Notes]

    def refusal(self, run: Run) -> str | None:
        """Why this run cannot be, although each of its settings could; None if it can."""
        return None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        """The files of the checkout that the run calls: they must be there, and results of others are kept apart."""
        return (place.aiodb,)

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        """The servers that the run needs."""
        return ()

    @abstractmethod
    def expected_seconds(self, run: Run) -> float:
        """About how long the run takes; corrected by the runs before it."""

    @abstractmethod
    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        """The commands of the run, in order."""

    @abstractmethod
    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        """What a finished step found; raises BadOutputError. Points without a row count as failed."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure]:
        """The figures of the report, in reading order."""
