"""What a campaign is once its file has been read and found possible: typed, complete, and ordered."""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from harness.experiments.base import Experiment
from harness.fields import Levels, Value
from harness.run import Run, rotated


@dataclass(frozen=True)
class Variant:
    """One size of a campaign, `quick`, a smoke test, or `night`, at most 65 minutes with repetitions; or of a slice of
    it, `night-levels`, where 65 minutes have no room for all levels."""

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
    # Where a slice asks something else than its campaign.
    title: str = ""
    question: str = ""
    source: str = ""

    @property
    def size(self) -> str:
        """`quick` or `night`."""
        return self.name.partition("-")[0]

    @property
    def slice(self) -> str:
        """Which slice of the campaign it is; empty for the campaign's own levels."""
        return self.name.partition("-")[2]


def variant_name(size: str, slice_: str) -> str:
    """The name of a size of a slice, or of a campaign's own levels."""
    return f"{size}-{slice_}" if slice_ else size


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

    def asking(self, variant: str) -> "Campaign":
        """The campaign with the title, question and source of one of its variants."""
        of = self.variants.get(variant)
        if of is None:
            return self
        return replace(
            self,
            title=of.title or self.title,
            question=of.question or self.question,
            source=of.source or self.source,
        )

    def slices(self) -> list[str]:
        """The names of its slices."""
        return list(dict.fromkeys(of.slice for of in self.variants.values() if of.slice))

    def expected_seconds(self, variant: Variant) -> float:
        """About how long a variant takes."""
        return sum(self.experiment.expected_seconds(run) for run in runs(self, variant))


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
