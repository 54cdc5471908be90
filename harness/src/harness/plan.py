"""What a campaign is once its file has been read and found possible: typed, complete, and ordered."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from harness.experiments.base import Experiment
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


@dataclass(frozen=True)
class Variant:
    """One size of a campaign: `quick`, a smoke test, or `night`, at most an hour with repetitions."""

    name: str
    stores: tuple[str, ...]
    phases: tuple[str, ...]
    repetitions: int
    # Axis to levels, in the order of the file.
    axes: MappingProxyType[str, tuple[Value, ...]]
    # Every parameter of the experiment, given or by default.
    parameters: Levels
    # What the campaign should have and has not, in plain words: shown in the report.
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Campaign:
    """A campaign file."""

    name: str
    path: Path
    title: str
    question: str
    # The document whose evaluation this repeats.
    source: str
    experiment: Experiment
    variants: MappingProxyType[str, Variant]


def runs(campaign: Campaign, variant: Variant) -> list[Run]:
    """The runs in their order: all of one repetition before the next, so that a machine that slows down or speeds up
    within the campaign shows as spread, and not as a difference between stores. Each repetition begins with another
    run, so that none is always the first, or always behind the same one."""
    outer = {axis: of for axis, of in variant.axes.items() if axis not in campaign.experiment.swept}
    swept = {axis: of for axis, of in variant.axes.items() if axis in campaign.experiment.swept}
    planned: list[Run] = []
    for repetition in range(1, variant.repetitions + 1):
        of_repetition = [
            Run(
                store,
                MappingProxyType(dict(zip(outer, combination, strict=True))),
                MappingProxyType(swept),
                variant.phases,
                variant.parameters,
                repetition,
            )
            for store in variant.stores
            for combination in itertools.product(*outer.values())
        ]
        planned += rotated(of_repetition, repetition - 1)
    return planned


def rotated(items: Sequence[_Item], turns: int) -> list[_Item]:
    """The items in their order, from another one on."""
    first = turns % len(items) if items else 0
    return [*items[first:], *items[:first]]
