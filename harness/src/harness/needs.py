"""What must be built and installed before a campaign can be measured, as the Makefile takes it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness.experiments.base import Experiment
from harness.run import Run
from harness.steps import Place

# What samples are taken with.
_ALWAYS = ("iproute2",)
# Targets of the Makefile, and where each leaves programs in the checkout. The first builds what the second does.
_BUILT = (("java", "java/cassandra"), ("ycsb", "java/ycsb"))


def targets(experiment: Experiment, planned: Iterable[Run], place: Place) -> list[str]:
    """The targets of the Makefile that build what the runs call."""
    programs = {program for run in planned for program in experiment.programs(run, place)}
    built = [target for target, folder in _BUILT if any(_within(place.checkout / folder, of) for of in programs)]
    return [*(("release",) if place.aiodb in programs else ()), *built[:1]]


def packages(experiment: Experiment, planned: Sequence[Run]) -> list[str]:
    """The packages of the system that the runs need."""
    return list(dict.fromkeys([*_ALWAYS, *(name for run in planned for name in experiment.packages(run))]))


def _within(folder: Path, program: Path) -> bool:
    return folder in program.parents
