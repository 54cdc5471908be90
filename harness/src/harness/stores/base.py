"""What YCSB must be told of a store, and what must run for it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.experiments.base import Service


class Store(ABC):
    """One store, as `bin/ycsb` calls it."""

    name: ClassVar[str]

    @abstractmethod
    def properties(self, home: Path, durability: str) -> Sequence[str]:
        """YCSB's properties, `name=value`, for a store with its files in `home`."""

    def services(self, home: Path, durability: str) -> Sequence[Service]:
        """The servers that it needs."""
        return ()

    def programs(self) -> Sequence[str]:
        """The programs that it needs beside YCSB."""
        return ()
