"""Puts a campaign's results where a repository keeps them, and reads them there: the report, its figures as files that
other pages can show, and the figures' values; small enough to be committed, so without the raw files."""

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.errors import HarnessError
from harness.experiments.base import Row
from harness.files import write_whole
from harness.plan import Campaign, Run, Variant, runs
from harness.report.charts import draw_alone
from harness.report.index import write_index
from harness.report.page import REPORT, below, report_html, verdict_of
from harness.results import Failure, Outcome, Point, Results, origin_of, read_json, read_plan

SUMMARY = "summary.json"
# A mark that not all runs of a point have, and how many do.
_MARK_OF_SOME = re.compile(r"^(.*) \((\d+) of \d+\)$")


def publish(results: Results, target: Path, checkout: Path) -> Path:
    """Writes report, figures and summary below `target`, and its index; returns their folder."""
    folder = target / results.campaign.name / results.variant.name
    write_whole(folder / REPORT, report_html(results, checkout, raw_beside=False))
    for old in folder.glob("figure-*.svg"):
        old.unlink()
    for number, figure in enumerate(results.campaign.experiment.figures(results), 1):
        write_whole(folder / f"figure-{number}.svg", draw_alone(figure, f"figure-{number}"))
    write_whole(folder / SUMMARY, below(checkout, json.dumps(_summary(results), indent=1) + "\n"))
    write_index(target)
    return folder


def _summary(results: Results) -> dict[str, Any]:
    return {
        **read_plan(results.folder),
        "verdict": verdict_of(results)[0],
        "points": [_point(point, results) for point in results.points()],
        "commands": [list(command) for of in results.outcomes.values() for command in of.commands],
    }


def _point(point: Point, results: Results) -> dict[str, Any]:
    summaries = {metric.name: point.summary(metric.name) for metric in results.campaign.experiment.metrics}
    values: Mapping[str, Any] = {
        name: {"median": of.median, "half_width": of.half_width, "values": of.values}
        for name, of in summaries.items()
        if of is not None
    }
    return {
        "store": point.store,
        "levels": dict(point.levels),
        "values": values,
        "ceiling_per_s": point.ceiling_per_s(),
        "marks": point.marks(),
        "failures": [dataclasses.asdict(failure) for failure in point.failures],
    }


def is_published(folder: Path) -> bool:
    """Whether a folder holds what was published of a campaign, and not its results."""
    return (folder / SUMMARY).exists() and not (folder / "campaign.json").exists()


def read_published(folder: Path, campaign: Campaign) -> Results:
    """The values of published results, by the plan that they were measured with. What was not published is missing: the
    raw files, when a run began, and which of a point's values have a mark that not all have."""
    path = folder / SUMMARY
    summary = read_json(path)
    origin = origin_of(path, summary)
    try:
        variant = _variant(summary)
        planned = runs(campaign, variant)
        rows: dict[str, list[Row]] = {run.id: [] for run in planned}
        failures: dict[str, list[Failure]] = {run.id: [] for run in planned}
        for point in summary["points"]:
            measuring = [run for run in planned if run.store == point["store"] and point["levels"] in run.points()]
            found = _rows(point)
            for number, row in enumerate(found):
                rows[measuring[number * len(measuring) // len(found)].id].append(row)
            failures[measuring[0].id] += [
                Failure(of["step"], of["reason"], tuple(of["log"]), (point["levels"],)) for of in point["failures"]
            ]
    except (KeyError, TypeError, IndexError) as error:
        raise HarnessError(f"{path} is no summary of {campaign.name} ({error!r})") from error
    outcomes = {
        run.id: _outcome(run, origin.began_utc, rows[run.id], failures[run.id])
        for run in planned
        if rows[run.id] or failures[run.id]
    }
    return Results(folder, campaign, variant, origin, tuple(planned), outcomes)


def _variant(summary: Mapping[str, Any]) -> Variant:
    plan = summary["plan"]
    return Variant(
        summary["variant"],
        tuple(plan["stores"]),
        tuple(plan["phases"]),
        plan["repetitions"],
        MappingProxyType({axis: tuple(levels) for axis, levels in plan["axes"].items()}),
        MappingProxyType(plan["parameters"]),
        tuple(plan["left_out"]),
    )


def _rows(point: Mapping[str, Any]) -> list[Row]:
    """As many rows as the metric with the most values has of them."""
    values = {name: of["values"] for name, of in point["values"].items()}
    return [
        Row(
            point["levels"],
            {name: of[number] for name, of in values.items() if number < len(of)},
            (0.0, 0.0),
            point["ceiling_per_s"],
            tuple(filter(None, (_mark_of(number, mark) for mark in point["marks"]))),
        )
        for number in range(max(map(len, values.values()), default=0))
    ]


def _mark_of(number: int, mark: str) -> str | None:
    """The mark as a point's row of this number has it; None where it has not."""
    of_some = _MARK_OF_SOME.match(mark)
    if of_some is None:
        return mark
    return of_some[1] if number < int(of_some[2]) else None


def _outcome(run: Run, began_utc: str, rows: Sequence[Row], failures: Sequence[Failure]) -> Outcome:
    return Outcome(run.id, run.store, run.repetition, began_utc, 0.0, (), tuple(rows), tuple(failures))
