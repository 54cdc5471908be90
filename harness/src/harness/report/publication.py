"""Puts a campaign's results where a repository keeps them, and reads them there: `summary.json` with every value and
where it comes from, and `series.json` with thinned curves. Reports are drawn from these, as from raw files."""

import dataclasses
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.files import write_whole
from harness.outcomes import Failure, Outcome, read_json
from harness.plan import Campaign, runs
from harness.report.evidence import Evidence, raw_evidence
from harness.report.older import is_older, outcomes_of_older, variant_of
from harness.report.panels import Panel
from harness.report.thinning import PANEL_DIGITS, shortened, thin
from harness.report.verdict import below, verdict_of
from harness.results import Point, Results, origin_of, read_plan
from harness.rows import Row
from harness.saturation import Saturation

SUMMARY = "summary.json"
SERIES = "series.json"
# The form of a summary. Summaries of the form before are read as well; they have no curves.
FORMAT = 2
# The form of the curves.
_SERIES_FORMAT = 3
# Digits of a published value; medians are taken before they are cut.
_DIGITS = 9
# The curves of a row.
_CURVES = ("series", "latency_us", "p99_us")


@dataclasses.dataclass(frozen=True)
class Published:
    """A campaign's results as they were published."""

    results: Results
    evidence: Evidence
    # Where the curves come from, if not from samples.
    curves_from: str = ""


def publish(results: Results, target: Path, checkout: Path, evidence: Evidence | None = None) -> Path:
    """Writes summary and series below `target`; returns their folder."""
    folder = target / results.campaign.name / results.variant.name
    write_published(Published(results, evidence or raw_evidence(results)), folder, checkout)
    return folder


def write_published(published: Published, folder: Path, checkout: Path) -> None:
    """Writes summary and series into a folder."""
    summary, series = _summary(published, checkout), _series(published)
    for name, text in (
        (SUMMARY, _in_lines(summary)),
        (SERIES, _in_one(series)),
    ):
        write_whole(folder / name, below(checkout, text) + "\n")


def _in_one(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _in_lines(summary: Mapping[str, Any]) -> str:
    """A line for each point and run, and for what else there is: small, and what has changed can be seen."""

    def lines(value: Any) -> str:
        if isinstance(value, list) and value:
            return "[\n" + ",\n".join(_in_one(one) for one in value) + "\n]"
        return _in_one(value)

    return "{\n" + ",\n".join(f"{_in_one(name)}:{lines(value)}" for name, value in summary.items()) + "\n}"


def _summary(published: Published, checkout: Path) -> dict[str, Any]:
    results = published.results
    verdict, _ = verdict_of(results)
    return {
        "format": FORMAT,
        **_plan(results),
        "verdict": verdict,
        "points": [_point(point, results) for point in results.points()],
        "runs": [
            _run(outcome, published.evidence.verdicts.get(run_id, ())) for run_id, outcome in results.outcomes.items()
        ],
    }


def _plan(results: Results) -> dict[str, Any]:
    """What was planned and where it comes from, as the results' own file has it."""
    if is_published(results.folder):
        said = json.loads((results.folder / SUMMARY).read_text(encoding="utf-8"))
        return {name: said[name] for name in ("campaign", "variant", "plan", "origin")}
    return {name: of for name, of in read_plan(results.folder).items() if name != "format"}


def _point(point: Point, results: Results) -> dict[str, Any]:
    summaries = {metric.name: point.summary(metric.name) for metric in results.campaign.experiment.metrics}
    return {
        "store": point.store,
        "levels": dict(point.levels),
        "values": {
            name: {"median": _cut(of.median), "interval": [_cut(end) for end in of.interval or ()], "n": len(of.values)}
            for name, of in summaries.items()
            if of is not None
        },
        "ceiling_per_s": point.ceiling_per_s(),
        "marks": point.marks(),
    }


def _run(outcome: Outcome, verdicts: Sequence[Saturation | None]) -> dict[str, Any]:
    known = [*verdicts, *[None] * (len(outcome.rows) - len(verdicts))]
    return {
        "run_id": outcome.run_id,
        "store": outcome.store,
        "repetition": outcome.repetition,
        "began_utc": outcome.began_utc,
        "seconds": round(outcome.seconds, 1),
        "commands": [shlex.join(command) for command in outcome.commands],
        "rows": [_row(row, verdict) for row, verdict in zip(outcome.rows, known, strict=True)],
        "failures": [dataclasses.asdict(failure) for failure in outcome.failures],
    }


def _row(row: Row, verdict: Saturation | None) -> dict[str, Any]:
    return {
        "levels": dict(row.levels),
        "values": {name: _cut(value) for name, value in row.values.items()},
        "window_s": list(row.window_s),
        "ceiling_per_s": None if row.ceiling_per_s is None else _cut(row.ceiling_per_s),
        "marks": list(row.marks),
        "saturated": None if verdict is None else [verdict.resource, verdict.evidence],
        "step": row.step,
        "part": row.part,
    }


def _cut(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


class _Seconds:
    """The lists of seconds that curves are of. Those of one run mostly share theirs, which is written once."""

    def __init__(self) -> None:
        self.lists: dict[tuple[float, ...], int] = {}

    def split(self, curve: Sequence[tuple[float, float | None]]) -> tuple[int, list[float | None]]:
        """The number of a curve's list of seconds, and its values."""
        seconds = tuple(x for x, _ in curve)
        return self.lists.setdefault(seconds, len(self.lists)), [y for _, y in curve]


def _series(published: Published) -> dict[str, Any]:
    results, evidence = published.results, published.evidence
    seconds = _Seconds()
    rows = {run_id: [_curves(row, seconds) for row in outcome.rows] for run_id, outcome in results.outcomes.items()}
    panels = {
        run_id: [
            {
                "title": panel.title,
                "lines": [[name, *seconds.split(thin(line, digits=PANEL_DIGITS))] for name, line in panel.lines],
            }
            for panel in shown
        ]
        for run_id, shown in evidence.panels.items()
    }
    return {
        "format": _SERIES_FORMAT,
        "from": published.curves_from,
        "seconds": list(seconds.lists),
        "rows": rows,
        "panels": panels,
    }


def _curves(row: Row, seconds: _Seconds) -> dict[str, Any]:
    curves: dict[str, Any] = {name: seconds.split(thin(curve)) for name in _CURVES if (curve := getattr(row, name))}
    if row.percentiles_us:
        curves["percentiles_us"] = {
            kind: [(percent, shortened(late)) for percent, late in curve] for kind, curve in row.percentiles_us.items()
        }
    return curves


def is_published(folder: Path) -> bool:
    """Whether a folder holds what was published of a campaign, and not its results."""
    return (folder / SUMMARY).exists() and not (folder / "campaign.json").exists()


def read_published(folder: Path, campaign: Campaign) -> Results:
    """The values of published results, by the plan that they were measured with."""
    return read_with_evidence(folder, campaign).results


def read_with_evidence(folder: Path, campaign: Campaign) -> Published:
    """The same with what was saturated and the resources over time. A summary of the form before has neither."""
    path = folder / SUMMARY
    summary = read_json(path, known=(FORMAT - 1, FORMAT))
    origin = origin_of(path, summary)
    try:
        variant = variant_of(summary)
        campaign = campaign.asking(variant.name)
        planned = tuple(runs(campaign, variant))
        if is_older(summary):
            found = outcomes_of_older(summary, planned, origin.began_utc)
            return Published(Results(folder, campaign, variant, origin, planned, found), Evidence())
        series = read_json(folder / SERIES, known=(_SERIES_FORMAT,))
        seconds = series["seconds"]
        outcomes = {of["run_id"]: _outcome(of, series["rows"][of["run_id"]], seconds) for of in summary["runs"]}
        verdicts = {of["run_id"]: tuple(_saturation(row["saturated"]) for row in of["rows"]) for of in summary["runs"]}
        shown = {run_id: tuple(_panel(it, seconds) for it in of) for run_id, of in series["panels"].items()}
        curves_from = str(series["from"])
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise HarnessError(f"{path} is no summary of {campaign.name} ({error!r})") from error
    if unknown := outcomes.keys() - {run.id for run in planned}:
        raise HarnessError(
            f"{path} has the run {min(unknown)}, which its plan does not make: measure it again, or take the program "
            f"of commit {origin.commit} to read it"
        )
    ordered = {run.id: outcomes[run.id] for run in planned if run.id in outcomes}
    return Published(
        Results(folder, campaign, variant, origin, planned, ordered), Evidence(verdicts, shown), curves_from
    )


def _outcome(of: Mapping[str, Any], curves: Sequence[Mapping[str, Any]], seconds: Sequence[Sequence[float]]) -> Outcome:
    return Outcome(
        of["run_id"],
        of["store"],
        of["repetition"],
        of["began_utc"],
        of["seconds"],
        tuple(tuple(shlex.split(command)) for command in of["commands"]),
        tuple(_read_row(row, its, seconds) for row, its in zip(of["rows"], curves, strict=True)),
        tuple(Failure(it["step"], it["reason"], tuple(it["log"]), tuple(it["points"])) for it in of["failures"]),
    )


def _read_row(row: Mapping[str, Any], curves: Mapping[str, Any], seconds: Sequence[Sequence[float]]) -> Row:
    began, ended = row["window_s"]
    return Row(
        row["levels"],
        row["values"],
        (began, ended),
        row["ceiling_per_s"],
        tuple(row["marks"]),
        percentiles_us={
            kind: tuple((percent, late) for percent, late in curve)
            for kind, curve in curves.get("percentiles_us", {}).items()
        },
        step=row["step"],
        part=row["part"],
        **{name: _curve(curves[name], seconds) if name in curves else () for name in _CURVES},
    )


def _saturation(said: Sequence[str] | None) -> Saturation | None:
    return None if said is None else Saturation(*said)


def _panel(of: Mapping[str, Any], seconds: Sequence[Sequence[float]]) -> Panel:
    return Panel(of["title"], tuple((name, _curve(line, seconds)) for name, *line in of["lines"]))


def _curve(said: Sequence[Any], seconds: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    of, values = said
    return tuple(zip(seconds[of], values, strict=True))
