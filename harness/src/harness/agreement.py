"""Whether two runs of one campaign say the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.errors import HarnessError
from harness.fields import levels_text
from harness.results import Results

# Medians of two runs agree within this part of the first.
AGREE_FRACTION = 0.10
# Two runs agree where so many of their medians do: on machines of others some never will.
AGREEING_PART = 0.90


@dataclass(frozen=True)
class Pair:
    """One main value of one point, in both runs."""

    point: str
    metric: str
    first: float
    second: float
    # What either run says of the point: a point that was disturbed agrees with nothing.
    marks: tuple[str, ...] = ()

    @property
    def difference(self) -> float:
        """By the first."""
        return self.second / self.first - 1

    @property
    def agree(self) -> bool:
        """Whether they differ by no more than two runs may."""
        return abs(self.difference) <= AGREE_FRACTION


def pairs(first: Results, second: Results) -> Iterator[Pair]:
    """Every main value that both runs have, in the order of the file; raises HarnessError where they have none."""
    others = {(point.store, levels_text(point.levels)): point for point in second.points()}
    found = False
    for point in first.points():
        other = others[point.store, levels_text(point.levels)]
        for metric in first.campaign.experiment.metrics:
            one, two = point.summary(metric.name), other.summary(metric.name)
            if metric.main and one is not None and two is not None:
                found = True
                marks = tuple(dict.fromkeys([*point.marks(), *other.marks()]))
                yield Pair(f"{point.store} {levels_text(point.levels)}", metric.title, one.median, two.median, marks)
    if not found:
        raise HarnessError("the two runs have no point in common")


def unpaired(first: Results, second: Results) -> Iterator[str]:
    """The points of which a run lacks a main value that the plan asks for: it failed, or was not measured."""
    for number, results in enumerate((first, second), 1):
        metrics = results.campaign.experiment.metrics
        for point in results.points():
            if any(point.summary(metric.name) is None for metric in metrics if metric.decides(point.levels)):
                yield f"{point.store} {levels_text(point.levels)}, run {number}"


def runs_agree(found: Sequence[Pair], lacking: Sequence[str]) -> bool:
    """Whether two runs say the same: none lacks a point, and enough of their medians agree."""
    return not lacking and sum(pair.agree for pair in found) >= AGREEING_PART * len(found)
