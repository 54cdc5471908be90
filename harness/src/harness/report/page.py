"""Writes the report of a campaign: one HTML file that needs no other, no script and no network."""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from harness.disturbance import DISTURBED
from harness.experiments.base import Metric
from harness.fields import levels_text
from harness.files import write_whole
from harness.flatness import NOT_FLAT
from harness.node_limits import NodeLimits
from harness.report.charts import Timeline, draw, draw_timeline
from harness.report.numbers import number
from harness.results import Failure, Outcome, Point, Results
from harness.sampling import read_samples
from harness.saturation import Saturation, saturation
from harness.statistics import SUFFICIENT_FRACTION, Summary

REPORT = "report.html"

# How marks begin that make a median doubtful.
DOUBTFUL = (NOT_FLAT, DISTURBED)


def write_report(results: Results, checkout: Path) -> Path:
    """Writes the report into the campaign's folder, beside the raw files that it links to."""
    path = results.folder / REPORT
    write_whole(path, report_html(results, checkout, raw_beside=True))
    return path


def report_html(results: Results, checkout: Path, raw_beside: bool) -> str:
    """The report as HTML. Paths below the checkout are shown from there on, since whoever repeats a command does so in
    a checkout of their own; raw files are linked where they lie beside the report."""
    body = [
        _head(results),
        _figures(results),
        _points(results),
        _resources(results),
        _failures(results),
        _method(results),
        _raw(results, raw_beside),
    ]
    title = f"{results.campaign.title} ({results.variant.name})"
    return below(checkout, page(title, "".join(body)))


def below(checkout: Path, text: str) -> str:
    """A text in which every path below the checkout begins there."""
    return text.replace(f"{checkout}/", "")


def page(title: str, body: str) -> str:
    """A whole page around a body of HTML."""
    style = resources.files("harness.report").joinpath("style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )


def _head(results: Results) -> str:
    campaign, origin = results.campaign, results.origin
    verdict, look = verdict_of(results)
    here = origin.identity
    chips = [
        f'<li class="{look}">{escape(verdict)}</li>',
        _chip(f"variant {results.variant.name}"),
        _chip(f"repetitions: {results.variant.repetitions}"),
        _chip(f"{here.cores} cores, {here.memory_bytes / 2**30:.0f} GiB, {here.disk}"),
        _chip(f"commit {origin.commit}"),
        _chip(origin.began_utc),
    ]
    return (
        f'<header><small><a href="../../index.html">All campaigns</a></small><h1>{escape(campaign.title)}</h1>'
        f'<p>{escape(campaign.question)}</p><p class="soft">After: {escape(campaign.source)}</p>'
        f'<ul class="chips">{"".join(chips)}</ul></header>'
    )


def _chip(text: str) -> str:
    return f"<li>{escape(text)}</li>"


def verdict_of(results: Results) -> tuple[str, str]:
    """Whether the campaign's figures may be quoted, in words, and how good that is."""
    points = results.points()
    failed = sum(1 for point in points if point.failures)
    unmeasured = sum(1 for point in points if not point.rows and not point.failures)
    insufficient = sum(
        1 for point in points if point.rows and not is_sufficient(point, results.campaign.experiment.metrics)
    )
    doubtful = sum(1 for point in points if any(mark.startswith(DOUBTFUL) for mark in point.marks()))
    metrics = results.campaign.experiment.metrics
    once = ", each measured once" if all(point.repetitions(metrics) <= 1 for point in points) else ""
    said = [
        f"{failed} of {len(points)} points failed" if failed else "",
        f"{unmeasured} not measured yet" if unmeasured else "",
        f"insufficient at {insufficient} of {len(points)} points{once}" if insufficient else "",
        f"not flat, or disturbed, at {doubtful}" if doubtful else "",
    ]
    words = ", ".join(filter(None, said))
    if words:
        return words, "bad" if failed else "warn"
    return f"sufficient: every interval within {SUFFICIENT_FRACTION:.0%}", "good"


def is_sufficient(point: Point, metrics: Iterable[Metric]) -> bool:
    """Whether every main metric of a point has a narrow enough interval."""
    summaries = [point.summary(metric.name) for metric in metrics if metric.main]
    return all(summary is not None and summary.sufficient for summary in summaries)


def _figures(results: Results) -> str:
    parts = []
    for position, figure in enumerate(results.campaign.experiment.figures(results)):
        drawn = draw(figure, f"figure-{position}")
        caption = f"<strong>{escape(figure.title)}</strong><span>{escape(figure.note)}</span>"
        parts.append(f"<figure><figcaption>{caption}</figcaption>{drawn}</figure>")
    note = (
        "Medians over repetitions; bars: the mean's 95 % confidence interval (Student's t). "
        "Dashed: measured in the same runs as what the stores are held against. Dotted: published by others."
    )
    return f'<section><h2>Figures</h2><p class="soft">{note}</p>{"".join(parts)}</section>'


def _points(results: Results) -> str:
    points = results.points()
    # A column that no point has a value for says nothing.
    metrics = [
        metric
        for metric in results.campaign.experiment.metrics
        if metric.main or any(point.summary(metric.name) for point in points)
    ]
    head = "".join(f"<th>{escape(metric.heading)}</th>" for metric in metrics)
    rows = []
    for point in points:
        cells = "".join(f"<td>{_summary(point.summary(metric.name), metric)}</td>" for metric in metrics)
        verdict = _point_verdict(point, metrics)
        name = escape(f"{point.store} {levels_text(point.levels)}")
        rows.append(f"<tr><td>{name}</td>{verdict}<td>{point.repetitions_text(metrics)}</td>{cells}</tr>")
    explained = (
        f"Median ± half the width of the mean's 95 % interval. Where that is more than {SUFFICIENT_FRACTION:.0%} of "
        "the median of a main value, the point is insufficient: its median should not be quoted."
    )
    return (
        f'<section><h2>Every point</h2><p class="soft">{explained}</p><div class="table"><table>'
        f'<tr><th>point</th><th class="text">verdict</th><th>n</th>{head}</tr>{"".join(rows)}</table></div></section>'
    )


def _summary(summary: Summary | None, metric: Metric) -> str:
    if summary is None:
        return "–"
    fraction = summary.half_width_fraction
    spread = f" ± {fraction:.0%}" if fraction is not None else " ± ?"
    look = ' class="warn"' if metric.main and not summary.sufficient else ""
    return f"{number(summary.median)}<small{look}>{spread}</small>"


def _point_verdict(point: Point, metrics: Sequence[Metric]) -> str:
    words = [escape(mark) for mark in point.marks()]
    if point.failures:
        words.append(f'<span class="bad">failed in {len(point.failures)} runs</span>')
    if point.rows and not is_sufficient(point, metrics):
        words.append('<span class="warn">insufficient</span>')
    if not point.rows and not point.failures:
        words.append('<span class="warn">not measured yet</span>')
    return f'<td class="text">{", ".join(words) or "sufficient"}</td>'


def _resources(results: Results) -> str:
    stores = [results.latest(store) for store in results.variant.stores]
    parts = [_resources_of(results, outcome, position) for position, (_, outcome) in enumerate(filter(None, stores))]
    if not parts:
        return ""
    note = (
        "Of the last run of each store; every run has its own files below. Sampled once a second; TCP is the payload "
        "that a process has received and sent, also to others on this machine. The table under the charts has every "
        "point, with the evidence of its last run."
    )
    return f'<section><h2>Resources</h2><p class="soft">{note}</p>{"".join(parts)}{_saturations(results)}</section>'


def _resources_of(results: Results, outcome: Outcome, position: int) -> str:
    samples = read_samples(_run_folder(results, outcome.run_id))
    windows = list(dict.fromkeys(row.window_s for row in outcome.rows))
    rows = outcome.rows
    # What all points of a run have in common would only make their names long.
    differ = [axis for row in rows[:1] for axis in row.levels if len({of.levels[axis] for of in rows}) > 1]
    names = [levels_text({axis: row.levels[axis] for axis in differ}) or levels_text(row.levels) for row in rows]
    if samples and samples.host:
        timeline = Timeline(
            samples.host,
            samples.processes,
            samples.nodes,
            [(name, row.series) for name, row in zip(names, rows, strict=True) if row.series],
            [(name, row.latency_us) for name, row in zip(names, rows, strict=True) if row.latency_us],
            [(began, ended, "") for began, ended in windows],
        )
        drawn = draw_timeline(timeline, f"timeline-{position}")
    else:
        drawn = "<p>The run was over before the first sample.</p>" if samples else "<p>Its samples are gone.</p>"
    title = f"<strong>{escape(outcome.store)}</strong><span>{escape(outcome.run_id)}</span>"
    return f"<figure><figcaption>{title}</figcaption>{drawn}</figure>"


def _run_folder(results: Results, run_id: str) -> Path:
    return results.folder / "runs" / run_id


def _saturations(results: Results) -> str:
    rate = min(results.campaign.experiment.metrics, key=lambda metric: (not metric.of_device, not metric.main))
    limits = NodeLimits.of(results.variant.parameters)
    verdicts: dict[str, list[Saturation]] = {}
    for run_id, outcome in results.outcomes.items():
        if samples := read_samples(_run_folder(results, run_id)):
            # What is offered at a rate is not to saturate anything.
            for row in (row for row in outcome.rows if rate.name in row.values):
                name = f"{outcome.store} {levels_text(row.levels)}"
                verdicts.setdefault(name, []).append(saturation(row, row.values[rate.name], samples, limits))
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="text">{escape(_resource(of))}</td>'
        f'<td class="text">{escape(of[-1].evidence)}</td></tr>'
        for name, of in verdicts.items()
    )
    head = '<tr><th>point</th><th class="text">saturated</th><th class="text">evidence</th></tr>'
    return f'<div class="table"><table>{head}{rows}</table></div>' if rows else ""


def _resource(verdicts: Sequence[Saturation]) -> str:
    """The resources that were saturated, with how often, where that was not the same each time."""
    counts = Counter(verdict.resource for verdict in verdicts)
    if len(counts) == 1:
        return verdicts[0].resource
    return ", ".join(f"{resource} ({count} of {len(verdicts)})" for resource, count in counts.items())


def _failures(results: Results) -> str:
    parts = []
    for run_id, outcome in results.outcomes.items():
        parts += [_failure(run_id, failure) for failure in outcome.failures]
    if not parts:
        return ""
    return f"<section><h2>What failed</h2>{''.join(parts)}</section>"


def _failure(run_id: str, failure: Failure) -> str:
    points = "; ".join(levels_text(point) for point in failure.points) or "nothing that is measured"
    log = escape("\n".join(failure.log)) or "(the log is empty)"
    return (
        f'<h3 class="bad">{escape(run_id)}, {escape(failure.step)}: {escape(failure.reason)}</h3>'
        f"<p>Lost: {escape(points)}. The log's last lines:</p><pre>{log}</pre>"
    )


def _method(results: Results) -> str:
    experiment, variant, origin = results.campaign.experiment, results.variant, results.origin
    facts = {
        "durability": experiment.notes.durability,
        "latency": experiment.notes.latency,
        "stores": ", ".join(variant.stores),
        "phases": ", ".join(variant.phases),
        "axes": "; ".join(f"{axis}: {', '.join(map(str, levels))}" for axis, levels in variant.axes.items()),
        "parameters": levels_text(variant.parameters),
        "order": "all points of one repetition before the next",
        "processor": f"{origin.identity.cpu}, {origin.identity.cores} cores",
        "memory": f"{origin.identity.memory_bytes / 2**30:.1f} GiB",
        "disk": f"{origin.identity.disk}, {origin.identity.file_system}",
        "kernel": origin.identity.kernel,
        "commit": origin.commit,
        "programs": ", ".join(f"{name} {digest}" for name, digest in origin.identity.programs.items()),
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
        "begun": origin.began_utc,
        "command": origin.command,
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    method = "".join(f"<p>{escape(text)}</p>" for text in experiment.notes.method)
    left_out = "".join(f"<li>{escape(text)}</li>" for text in variant.left_out)
    dropped = f"<h3>Left out</h3><ul>{left_out}</ul>" if left_out else ""
    return f"<section><h2>What was measured, and how</h2>{method}<dl>{listed}</dl>{dropped}</section>"


def _raw(results: Results, beside: bool) -> str:
    parts = []
    if not beside:
        parts.append('<p class="soft">The raw files are not published: the command above makes them anew.</p>')
    for run in results.planned:
        if outcome := results.outcomes.get(run.id):
            files = sorted(path.name for path in (results.folder / "runs" / run.id).iterdir() if path.is_file())
            links = ", ".join(f'<a href="runs/{escape(run.id)}/{escape(name)}">{escape(name)}</a>' for name in files)
            kept = f": {links}" if beside else ""
            commands = escape("\n".join(shlex.join(command) for command in outcome.commands))
            parts.append(
                f"<details><summary>{escape(run.title)}</summary><p><small>{escape(outcome.began_utc)}, "
                f"{outcome.seconds:.0f} s{kept}</small></p><pre>{commands}</pre></details>"
            )
        else:
            parts.append(f'<p class="warn">{escape(run.title)}: not measured yet</p>')
    return f"<section><h2>Runs</h2>{''.join(parts)}</section>"
