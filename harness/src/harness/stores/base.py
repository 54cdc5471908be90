"""What YCSB must be told of a store, and what must run for it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

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

    @property
    def client(self) -> str:
        """The name that `bin/ycsb` has for it."""
        return self.name

    @abstractmethod
    def properties(self, place: Place, durability: str) -> Sequence[str]:
        """YCSB's properties, `name=value`, for a store with its files in `place.scratch`."""

    def services(self, place: Place, durability: str) -> Sequence[Service]:
        """The servers that it needs."""
        return ()

    def programs(self, place: Place) -> Sequence[Path]:
        """The programs that it needs beside YCSB."""
        return ()

    def disk_bytes(self, held_bytes: float) -> float:
        """About what it has on the disk that holds so much."""
        return held_bytes
