"""What YCSB must be told of a store, and what must run for it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.limits import memory_limits_missing
from harness.steps import Place, Service

DURABILITIES = ("sync", "interval", "none")


class Store(ABC):
    """One store, as `bin/ycsb` calls it."""

    name: ClassVar[str]
    # As people call it, and its colour in every figure, one of style.css.
    title: ClassVar[str]
    colour: ClassVar[str]
    # Those that it can be asked for.
    durabilities: ClassVar[tuple[str, ...]] = DURABILITIES
    # Until its servers answer, about.
    starting_seconds: ClassVar[float] = 0.0
    # Records of a kilobyte that a table of it is loaded with, about.
    loads_per_s: ClassVar[float] = 20_000.0
    # Records of a kilobyte that it takes at most, about: as many as the fastest store has been seen to write.
    writes_per_s: ClassVar[float] = 60_000.0

    # Whether the data lie in YCSB's own process, and with how little memory whatever holds them starts, MiB.
    in_client: ClassVar[bool] = False
    least_memory_mib: ClassVar[int] = 0

    # The system's packages with its servers.
    packages: ClassVar[tuple[str, ...]] = ()

    @property
    def client(self) -> str:
        """The name that `bin/ycsb` has for it."""
        return self.name

    @abstractmethod
    def properties(self, place: Place, durability: str) -> Sequence[str]:
        """YCSB's properties, `name=value`, for a store with its files in `place.scratch`."""

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        """The servers that it needs, with so much memory between them; 0: as much as there is."""
        return ()

    def limits_missing(self) -> str | None:
        """Why its memory cannot be limited here; None if it can."""
        return memory_limits_missing()

    def ran_out_of_heap(self, place: Place) -> bool:
        """Whether a server of it that died has said that its virtual machine found no more room."""
        return False

    def programs(self, place: Place) -> Sequence[Path]:
        """The programs that it needs beside YCSB."""
        return ()

    def disk_bytes(self, held_bytes: float) -> float:
        """About what it has on the disk that holds so much."""
        return held_bytes
