"""What every kind of experiment says of itself: what a campaign may set, which commands one run takes, and which
values come out. Nothing here starts a process."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from harness.fields import Field
from harness.rows import Metric, Row
from harness.run import Run
from harness.sampling import HostSample
from harness.steps import Finished, Place, Service, Step


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

    def packages(self, run: Run) -> Sequence[str]:
        """The packages of the system that the run calls programs of."""
        return ()

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
