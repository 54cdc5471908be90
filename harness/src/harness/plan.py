"""What a campaign is once its file has been read and found possible: typed, complete, and ordered."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.experiments.base import Experiment
from harness.fields import Levels, Value
from harness.run import Run, rotated


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
