"""One run of a campaign: what is executed and kept as a whole."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from harness.fields import Levels, Value, levels_text

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Run:
    """One thing to execute: a store at some levels, once. It measures every level of the swept axes."""

    store: str
    # The axes that have one level each in this run.
    levels: Levels
    # The axes whose levels are all measured within this run, on one loaded store.
    swept: MappingProxyType[str, tuple[Value, ...]]
    phases: tuple[str, ...]
    parameters: Levels
    # From 1.
    repetition: int

    @property
    def id(self) -> str:
        """A name for files. It changes with anything that could change the result, so that a run is taken for
        finished only where exactly this was measured."""
        content = json.dumps(
            [self.store, dict(self.levels), {axis: list(of) for axis, of in self.swept.items()},
             list(self.phases), dict(self.parameters)],
            sort_keys=True,
        )  # fmt: skip
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        words = [self.store, *(f"{axis}-{value}" for axis, value in self.levels.items())]
        return "_".join([*words, digest, f"r{self.repetition}"])

    @property
    def title(self) -> str:
        """What runs, for people."""
        return " ".join(filter(None, [self.store, levels_text(self.levels), f"repetition {self.repetition}"]))

    def points(self) -> Iterator[dict[str, Value]]:
        """Every point that this run measures: all axes, one level each, in the order of the file."""
        for combination in itertools.product(*self.swept.values()):
            yield {**self.levels, **dict(zip(self.swept, combination, strict=True))}


def rotated(items: Sequence[_Item], turns: int) -> list[_Item]:
    """The items in their order, from another one on."""
    first = turns % len(items) if items else 0
    return [*items[first:], *items[:first]]
