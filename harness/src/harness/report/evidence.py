"""What shows why a figure is as it is: which resource each row used up, and what a run used over time. Taken from raw
samples where they are, else as it was published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.node_limits import NodeLimits
from harness.outcomes import Outcome
from harness.report.panels import Panel, panels
from harness.results import Results
from harness.rows import Row
from harness.sampling import Samples, read_samples
from harness.saturation import NOTHING, Saturation, saturation

# What is said where no resource was saturated.
NOT_FOUND = "not found"


@dataclass(frozen=True)
class Evidence:
    """By the run's id: a verdict for each of its rows, None where nothing is known, and its panels."""

    verdicts: Mapping[str, tuple[Saturation | None, ...]] = field(default_factory=dict)
    panels: Mapping[str, tuple[Panel, ...]] = field(default_factory=dict)

    def of_point(self, results: Results, store: str, levels: Mapping[str, object]) -> list[Saturation]:
        """The verdicts on all rows of a point, in the order of the runs."""
        found = []
        for run_id, outcome in results.outcomes.items():
            for row, verdict in zip(outcome.rows, self.verdicts.get(run_id, ()), strict=False):
                if outcome.store == store and dict(row.levels) == dict(levels) and verdict is not None:
                    found.append(verdict)
        return found


def raw_evidence(results: Results) -> Evidence:
    """From the samples beside the runs. Panels are of the last run of each store: all others would repeat them."""
    shown = [found[0].id for store in results.variant.stores if (found := results.latest(store))]
    verdicts, drawn = {}, {}
    for run_id, outcome in results.outcomes.items():
        if samples := read_samples(run_folder(results, run_id)):
            verdicts[run_id] = _verdicts(results, outcome, samples)
            if run_id in shown:
                drawn[run_id] = panels(outcome.rows, samples)
    return Evidence(verdicts, drawn)


def run_folder(results: Results, run_id: str) -> Path:
    """Where the raw files of a run are."""
    return results.folder / "runs" / run_id


def _verdicts(results: Results, outcome: Outcome, samples: Samples) -> tuple[Saturation | None, ...]:
    rate = min(results.campaign.experiment.metrics, key=lambda metric: (not metric.of_device, not metric.main))
    limits = NodeLimits.of(results.variant.parameters)
    return tuple(_verdict(row, rate.name, samples, limits) for row in outcome.rows)


def _verdict(row: Row, rate: str, samples: Samples, limits: NodeLimits) -> Saturation | None:
    """What is offered at a rate is not to saturate anything."""
    return saturation(row, row.values[rate], samples, limits) if rate in row.values else None


def resources_text(verdicts: Sequence[Saturation]) -> str:
    """The resources that were saturated, with how often, where that was not the same each time."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        resource = NOT_FOUND if verdict.resource == NOTHING else verdict.resource
        counts[resource] = counts.get(resource, 0) + 1
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{resource} ({count} of {len(verdicts)})" for resource, count in counts.items())
