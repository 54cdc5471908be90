"""Puts a campaign's results where a repository keeps them: the report, its figures as files that other pages can show,
and the figures' values; small enough to be committed, so without the raw files."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.files import write_whole
from harness.report.charts import draw_alone
from harness.report.index import write_index
from harness.report.page import REPORT, below, report_html, verdict_of
from harness.results import Point, Results, read_plan

SUMMARY = "summary.json"


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
