"""What a run is made of: its commands, the servers that these need, and where all of them write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.fields import Value


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
