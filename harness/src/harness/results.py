"""What a campaign leaves in its folder, read and written: one folder for each run with its raw files and a `run.json`,
and one `campaign.json` that says where all of it comes from."""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.disturbance import DISTURBED
from harness.errors import HarnessError
from harness.fields import Levels
from harness.flatness import NOT_FLAT
from harness.host import Identity, Origin
from harness.outcomes import OUTCOME, Failure, Outcome, read_json, read_outcome, write_json
from harness.plan import Campaign, Variant
from harness.rows import Metric, Row
from harness.run import Run
from harness.statistics import Summary, summarize

# How marks begin for which a value is not to be quoted: what had not settled, what others disturbed, nodes that had to
# share a processor, stores that were offered more than they can do, and those that did not do as they were asked.
DOUBTFUL = MappingProxyType(
    {
        NOT_FLAT: "not flat",
        DISTURBED: "disturbed",
        "shared CPU": "shared processor",
        "offered ": "offered too much",
        "another backend": "another backend",
    }
)


@dataclass(frozen=True)
class Point:
    """One store at one combination of levels: all of its repetitions together."""

    store: str
    levels: Levels
    # Of each run that found something, its rows: several where it measures its points in passes.
    runs: tuple[tuple[Row, ...], ...]
    failures: tuple[Failure, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of all runs, those of one run together."""
        return tuple(row for rows in self.runs for row in rows)

    def summary(self, metric: str) -> Summary | None:
        """The metric over the repetitions; None where none has it. A run is one value, the median of its passes: they
        share the run's store, its warmth and its minute, so that their spread says nothing of another run's."""
        passes = [[row.values[metric] for row in rows if metric in row.values] for rows in self.runs]
        values = [statistics.median(of) for of in passes if of]
        return summarize(values) if values else None

    def repetitions(self, metrics: Iterable[Metric]) -> int:
        """How many runs have a main value."""
        return len(self._passes(metrics))

    def repetitions_text(self, metrics: Iterable[Metric]) -> str:
        """How many runs have a main value, and in how many passes where these are more."""
        passes = self._passes(metrics)
        return str(len(passes)) if sum(passes) == len(passes) else f"{len(passes)} runs, {sum(passes)} passes"

    def _passes(self, metrics: Iterable[Metric]) -> list[int]:
        """Of each run that has a main value, how many of its rows do."""
        main = [metric.name for metric in metrics if metric.main]
        passes = [sum(1 for row in rows if any(name in row.values for name in main)) for rows in self.runs]
        return [of for of in passes if of]

    def ceiling_per_s(self) -> float | None:
        """The median of what the device gave."""
        ceilings = [row.ceiling_per_s for row in self.rows if row.ceiling_per_s is not None]
        return statistics.median(ceilings) if ceilings else None

    def doubts(self) -> list[str]:
        """Why a value is not to be quoted, in a word each: what at least half of the rows are marked with, for then the
        median may be one of theirs."""
        found: dict[str, int] = {}
        for row in self.rows:
            for beginning, word in DOUBTFUL.items():
                if any(mark.startswith(beginning) for mark in row.marks):
                    found[word] = found.get(word, 0) + 1
        total = len(self.rows)
        return [
            word if count == total else f"{word} ({count} of {total})"
            for word, count in found.items()
            if 2 * count >= total
        ]

    def is_flat(self) -> bool:
        """Whether throughput had settled in every row."""
        return not any(mark.startswith(NOT_FLAT) for row in self.rows for mark in row.marks)

    def marks(self) -> list[str]:
        """The marks of all rows, each once, with how many have it where not all do. Where a run has several,
        as of its passes, these are called measurements, lest they be taken for runs."""
        counts = Counter(mark for row in self.rows for mark in dict.fromkeys(row.marks))
        total = len(self.rows)
        of = f"{total}" if total == len(self.runs) else f"{total} measurements"
        return [mark if count == total else f"{mark} ({count} of {of})" for mark, count in counts.items()]


@dataclass(frozen=True)
class Results:
    """A campaign's folder as far as it is filled."""

    folder: Path
    campaign: Campaign
    variant: Variant
    origin: Origin
    planned: tuple[Run, ...]
    outcomes: Mapping[str, Outcome]

    def points(self) -> list[Point]:
        """Every planned point, in the order of the file, measured or not."""
        found: dict[tuple[object, ...], list[tuple[Row, ...]]] = {}
        failures: dict[tuple[object, ...], list[Failure]] = {}
        levels: dict[tuple[object, ...], tuple[str, Levels]] = {}
        for run in self.planned:
            for point in run.points():
                levels.setdefault(_key(run.store, point), (run.store, point))
            if outcome := self.outcomes.get(run.id):
                passes: dict[tuple[object, ...], list[Row]] = {}
                for row in outcome.rows:
                    passes.setdefault(_key(run.store, row.levels), []).append(row)
                for key, rows in passes.items():
                    found.setdefault(key, []).append(tuple(rows))
                for failure in outcome.failures:
                    for failed in failure.points:
                        failures.setdefault(_key(run.store, failed), []).append(failure)
        return [
            Point(store, point, tuple(found.get(key, ())), tuple(failures.get(key, ())))
            for key, (store, point) in levels.items()
        ]

    def latest(self, store: str | None = None) -> tuple[Run, Outcome] | None:
        """The last finished run with rows, for the time series beside the figures."""
        for run in reversed(self.planned):
            outcome = self.outcomes.get(run.id)
            if outcome and outcome.rows and store in (None, run.store):
                return run, outcome
        return None


def _key(store: str, levels: Levels) -> tuple[object, ...]:
    return (store, *sorted(levels.items()))


def grouped(points: Iterable[Point], key: Callable[[Point], str]) -> dict[str, list[Point]]:
    """Points by a key, in order of appearance."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(key(point), []).append(point)
    return groups


def write_campaign(folder: Path, campaign: Campaign, variant: Variant, origin: Origin) -> None:
    """Writes the `campaign.json`: where the results come from, and the plan as it was understood."""
    plan = {
        "stores": variant.stores,
        "phases": variant.phases,
        "repetitions": variant.repetitions,
        "axes": dict(variant.axes),
        "parameters": dict(variant.parameters),
        "left_out": variant.left_out,
    }
    content = {
        "campaign": campaign.name,
        "variant": variant.name,
        "plan": plan,
        "origin": dataclasses.asdict(origin),
    }
    write_json(folder / "campaign.json", content)


def read_origin(folder: Path) -> Origin | None:
    """The origin in a `campaign.json`; None where there is none yet."""
    path = folder / "campaign.json"
    return origin_of(path, read_json(path)) if path.exists() else None


def origin_of(path: Path, values: Mapping[str, Any]) -> Origin:
    """The origin among a file's values."""
    try:
        origin = values["origin"]
        return Origin(**{**origin, "identity": Identity(**origin["identity"])})
    except (KeyError, TypeError) as error:
        raise HarnessError(f"{path} is no campaign's file ({error!r}): move its folder away") from error


def read_plan(folder: Path) -> dict[str, Any]:
    """A `campaign.json` as it is."""
    return read_json(folder / "campaign.json")


def read_results(folder: Path, campaign: Campaign, variant: Variant, planned: Sequence[Run]) -> Results:
    """What a folder holds of a plan."""
    origin = read_origin(folder)
    if origin is None:
        raise HarnessError(f"{folder} has no results yet: run the campaign first")
    outcomes = {run.id: read_outcome(folder / "runs" / run.id) for run in planned if is_finished(folder, run)}
    return Results(folder, campaign.asking(variant.name), variant, origin, tuple(planned), outcomes)


def is_finished(folder: Path, run: Run) -> bool:
    """Whether a run's folder is there: it gets its name only when it is whole."""
    return (folder / "runs" / run.id / OUTCOME).exists()
