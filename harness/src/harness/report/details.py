"""What a report has below its first screen, folded: further figures, every value, resources, method, runs."""

import shlex
from collections.abc import Sequence
from html import escape

from harness.fields import levels_text
from harness.outcomes import Failure
from harness.report.charts import panel_chart, place
from harness.report.evidence import Evidence, resources_text, run_folder
from harness.report.figure import Figure, HeatMap
from harness.report.first_screen import figure_of
from harness.report.names import constants, point_name, store_name
from harness.report.quantities import interval, quantity
from harness.report.verdict import reasons
from harness.results import Results
from harness.rows import Metric
from harness.statistics import INTERVAL, LEAST_VALUES, SUFFICIENT_FRACTION, Summary


def details(
    results: Results, evidence: Evidence, others: Sequence[Figure | HeatMap], raw_beside: bool, curves_from: str = ""
) -> str:
    """All that is folded, as HTML, with the figures that the first screen does not show; what failed is open."""
    return "".join(
        [
            _failures(results),
            _figures(others, curves_from),
            _points(results),
            _resources(results, evidence, curves_from),
            _method(results),
            _raw(results, raw_beside),
        ]
    )


def _folded(title: str, content: str, note: str = "", is_open: bool = False) -> str:
    if not content:
        return ""
    said = f'<p class="soft">{note}</p>' if note else ""
    return f"<details{' open' if is_open else ''}><summary><h2>{title}</h2></summary>{said}{content}</details>"


def _figures(others: Sequence[Figure | HeatMap], curves_from: str) -> str:
    note = (
        "Medians over repetitions, with their intervals. Hollow: not to be quoted; the table below says why. Dashed "
        "and grey: measured in the same runs as what stores are held against. Dotted: published by others, on other "
        "hardware. A click on a name hides its line; dragging zooms, a double click ends that."
    )
    note += f" {escape(curves_from)}" if curves_from else ""
    return _folded("Further figures and percentiles", "".join(map(figure_of, others)), note)


def _points(results: Results) -> str:
    points = results.points()
    # A column that no point has a value for says nothing.
    metrics = [
        metric
        for metric in results.campaign.experiment.metrics
        if metric.main or any(point.summary(metric.name) for point in points)
    ]
    head = "".join(f"<th>{escape(metric.title)}</th>" for metric in metrics)
    rows = []
    for point in points:
        cells = "".join(f"<td>{_value(point.summary(metric.name), metric)}</td>" for metric in metrics)
        doubts = reasons(point, metrics)
        sure = f'<span class="warn">{escape(", ".join(doubts))}</span>' if doubts else "quotable"
        said = ", ".join(filter(None, [sure, *(escape(mark) for mark in point.marks() if mark not in doubts)]))
        name = escape(point_name(results, point))
        rows.append(
            f'<tr><td>{name}</td>{cells}<td>{point.repetitions_text(metrics)}</td><td class="text">{said}</td></tr>'
        )
    note = (
        f"Everywhere: {escape(constants(results))}. Median, and below it the interval: {INTERVAL} A point is quotable "
        f"with at least {LEAST_VALUES} repetitions and an interval that reaches no further than "
        f"{SUFFICIENT_FRACTION:.0%} of the median."
    )
    table = (
        f'<div class="table"><table class="points"><tr><th>point</th>{head}<th>repetitions</th>'
        f'<th class="text">may be quoted</th></tr>{"".join(rows)}</table></div>'
    )
    return _folded("Every value", table, note)


def _value(summary: Summary | None, metric: Metric) -> str:
    if summary is None:
        return "–"
    within = f"<small>{escape(interval(summary, metric.unit))}</small>" if summary.interval else ""
    return f"{escape(quantity(summary.median, metric.unit))}{within}"


def _resources(results: Results, evidence: Evidence, curves_from: str) -> str:
    parts = []
    for run_id, panels in evidence.panels.items():
        outcome = results.outcomes[run_id]
        drawn = "".join(f"<h4>{escape(panel.title)}</h4>{place(panel_chart(panel))}" for panel in panels if panel.lines)
        title = f"{escape(store_name(outcome.store))}, repetition {outcome.repetition}"
        parts.append(f"<figure><figcaption><strong>{title}</strong></figcaption>{drawn}</figure>")
    rows = []
    for point in results.points():
        if verdicts := evidence.of_point(results, point.store, point.levels):
            rows.append(
                f"<tr><td>{escape(point_name(results, point))}</td>"
                f'<td class="text">{escape(resources_text(verdicts))}</td>'
                f'<td class="text">{escape(verdicts[-1].evidence)}</td></tr>'
            )
    head = '<tr><th>point</th><th class="text">held back by</th><th class="text">evidence, of the last run</th></tr>'
    table = f'<div class="table"><table>{head}{"".join(rows)}</table></div>' if rows else ""
    note = (
        "What held each point back, and below it what the last run of each store used over time, sampled once a "
        "second. TCP is the payload that a process has received and sent, also to others on this machine."
    )
    note += f" {escape(curves_from)}" if curves_from and parts else ""
    return _folded("Resources", table + "".join(parts), note)


def _failures(results: Results) -> str:
    parts = [_failure(run_id, failure) for run_id, outcome in results.outcomes.items() for failure in outcome.failures]
    missing = [run.title for run in results.planned if run.id not in results.outcomes]
    parts += [f'<p class="warn">{escape(title)}: not measured yet</p>' for title in missing]
    return _folded("What failed or is missing", "".join(parts), is_open=True)


def _failure(run_id: str, failure: Failure) -> str:
    points = "; ".join(levels_text(point) for point in failure.points) or "nothing that is measured"
    log = escape("\n".join(failure.log)) or "(the log is empty)"
    return (
        f'<h3 class="bad">{escape(run_id)}, {escape(failure.step)}: {escape(failure.reason)}</h3>'
        f"<p>Lost: {escape(points)}. The log's last lines:</p><pre>{log}</pre>"
    )


def _method(results: Results) -> str:
    experiment, variant, origin = results.campaign.experiment, results.variant, results.origin
    here = origin.identity
    facts = {
        "after": results.campaign.source,
        "variant": f"{variant.name}, {variant.repetitions} repetitions",
        "durability": experiment.notes.durability,
        "latency": experiment.notes.latency,
        "stores": ", ".join(map(store_name, variant.stores)),
        "axes": "; ".join(f"{axis}: {', '.join(map(str, levels))}" for axis, levels in variant.axes.items()),
        "parameters": levels_text(variant.parameters),
        "machine": f"{here.cpu}, {here.cores} cores, {here.memory_bytes / 2**30:.1f} GiB, {here.disk}, "
        f"{here.file_system}, {here.kernel}",
        "commit": origin.commit,
        "programs": ", ".join(f"{name} {digest}" for name, digest in here.programs.items()),
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
        "begun": origin.began_utc,
        "command": origin.command,
    }
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())
    method = "".join(f"<p>{escape(text)}</p>" for text in experiment.notes.method)
    left_out = "".join(f"<li>{escape(text)}</li>" for text in variant.left_out)
    dropped = f"<h3>Left out</h3><ul>{left_out}</ul>" if left_out else ""
    return _folded("Method, machine and command", f"{method}<dl>{listed}</dl>{dropped}")


def _raw(results: Results, beside: bool) -> str:
    parts = []
    if not beside:
        parts.append('<p class="soft">The raw files are not published: the command above makes them anew.</p>')
    for run in results.planned:
        if outcome := results.outcomes.get(run.id):
            kept = f": {_links(results, run.id)}" if beside else ""
            parts.append(
                f"<details><summary>{escape(run.title)}</summary><p><small>{escape(outcome.began_utc)}, "
                f"{outcome.seconds:.0f} s{kept}</small></p><pre>{_commands(outcome.commands)}</pre></details>"
            )
    return _folded("Runs", "".join(parts))


def _links(results: Results, run_id: str) -> str:
    files = sorted(path.name for path in run_folder(results, run_id).iterdir() if path.is_file())
    return ", ".join(f'<a href="runs/{escape(run_id)}/{escape(name)}">{escape(name)}</a>' for name in files)


def _commands(commands: Sequence[Sequence[str]]) -> str:
    return escape("\n".join(shlex.join(command) for command in commands))
