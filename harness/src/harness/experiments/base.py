"""What every kind of experiment says of itself: what a campaign may set, which commands one run takes, and which
values come out. Nothing here starts a process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from harness.fields import Field, Value

if TYPE_CHECKING:
    from harness.plan import Run
    from harness.report.answer import Answer
    from harness.report.figures import Figure, HeatMap
    from harness.results import Results
    from harness.sampling import HostSample


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


# How the mark of a row begins whose store did not live to the end, where that is a result.
DIED = "died "


def _nothing() -> None:
    pass


def _unknown() -> str | None:
    return None


@dataclass(frozen=True)
class Step:
    """One command of a run, whose standard output is kept as `NAME.out` and whose standard error as `NAME.log`."""

    name: str
    command: tuple[str, ...]
    # After this the command is taken to hang: it is stopped, and what it measures has failed.
    seconds_at_most: float
    # The points that it measures; empty for preparation.
    points: tuple[Mapping[str, Value], ...] = ()
    # The memory that its processes may use together, page cache included; None for all that there is.
    memory_bytes: int | None = None
    # Whether its end, or that of its server, is a result: a store that runs out of memory is asked for what it did
    # until then.
    may_die: bool = False
    # What must be done before it starts.
    prepare: Callable[[], None] = _nothing
    # Of preparation, the points that cannot be measured without it; None for all that come after it.
    needed_by: tuple[Mapping[str, Value], ...] | None = None


@dataclass(frozen=True)
class Service:
    """A server that a run needs: started before its steps and stopped after them."""

    name: str
    command: tuple[str, ...]
    # Whether it answers; asked until it does.
    ready: Callable[[], bool]
    seconds_to_start: float
    # As of a step.
    memory_bytes: int | None = None
    # What must be done before it starts, and once all its processes have ended.
    prepare: Callable[[], None] = _nothing
    tidy: Callable[[], None] = _nothing
    # Why the kernel has killed a process of it, if it has: asked once the server has died.
    killed: Callable[[], str | None] = _unknown


@dataclass(frozen=True)
class Finished:
    """A step that has ended: by itself and without an error, unless it may die."""

    step: Step
    # Its whole standard output.
    output: str
    # Lines of its standard error, with seconds since the run began.
    log: tuple[tuple[float, str], ...]
    # The same clock.
    began_s: float
    ended_s: float
    # Why it ended, where it did not end by itself and without an error.
    death: str | None = None


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
    # The mean latency over time, at the same seconds, µs.
    latency_us: tuple[tuple[float, float], ...] = ()
    # Latency by kind of operation: percentile, µs.
    percentiles_us: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    # The 99th percentile over time, where an experiment is about that.
    p99_us: tuple[tuple[float, float], ...] = ()
    # The step that measured it, whose files beside it are named so. Known once the row is kept.
    step: str = ""
    # In which part of its run, from 1: a run that was interrupted goes on in another part, with everything that it
    # needs prepared again.
    part: int = 1


@dataclass(frozen=True)
class Metric:
    """One value of the rows that the report shows."""

    name: str
    title: str
    unit: str
    # Whether its interval decides if the campaign is sufficient.
    main: bool = False
    # Whether it is what rows hold against the device; without one that is the first main value.
    of_device: bool = False

    @property
    def heading(self) -> str:
        """The title with the unit, where there is one."""
        return ", ".join(filter(None, (self.title, self.unit)))


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
    # Whether an interrupted run may go on where it ended: only where no step that measures depends on what those before
    # it have left in the store. Such an experiment prepares only what missing points need.
    resumable: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Field]]
    metrics: ClassVar[tuple[Metric, ...]]
    notes: ClassVar[Notes]

    def refusal(self, run: Run) -> str | None:
        """Why this run cannot be, although each of its settings could; None if it can."""
        return None

    def obstacle(self, run: Run) -> str | None:
        """Why this machine, as it is now, cannot measure the run; None if it can."""
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
    def needed_bytes(self, run: Run) -> float:
        """About how much the run writes to the disk and has there at once; its logs and samples apart."""

    @abstractmethod
    def steps(self, run: Run, place: Place) -> Iterable[Step]:
        """The commands of the run, in order. Each is asked for when those before it have ended, so that it may depend
        on what they left in `place`; where none does, they are a sequence, and it is known how many there are."""

    @abstractmethod
    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        """What a finished step found; raises BadOutputError. Points without a row count as failed."""

    def marks(self, run: Run, row: Row, host: Sequence[HostSample]) -> Sequence[str]:
        """What a reader must know of a row for what the machine did meanwhile; asked once the run has ended."""
        return ()

    @abstractmethod
    def answer(self, results: Results) -> Answer:
        """What the campaign found, for the first screen of its report."""

    @abstractmethod
    def figures(self, results: Results) -> Sequence[Figure | HeatMap]:
        """The figures of the report, in reading order."""
