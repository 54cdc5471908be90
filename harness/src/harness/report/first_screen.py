"""The first screen of a report: the answer in a sentence, whether it may be quoted, the document's finding beside it,
one chart, and a small table of what was measured, how sure that is, and what was saturated."""

from dataclasses import replace
from html import escape

from harness.report.answer import Agreement, Answer, Finding, Shown
from harness.report.charts import drawn
from harness.report.evidence import Evidence, resources_text
from harness.report.figure import Figure, HeatMap
from harness.report.quantities import interval, quantity
from harness.report.verdict import reasons, verdict_of
from harness.results import Results

# Rows of the table: as many as are seen beside the chart without scrolling.
MOST_SHOWN = 10
LOOKS = {Agreement.AGREES: "good", Agreement.DIFFERS: "bad", Agreement.UNKNOWN: "warn"}


def first_screen(
    results: Results, evidence: Evidence, answer: Answer, shown: Figure | HeatMap | None, index: str
) -> str:
    """The header of a report, as HTML, with the figure of its answer; `index` is the way to the page that lists all."""
    campaign = results.campaign
    verdict, look = verdict_of(results)
    main = figure_of(shown, "main") if shown else ""
    return (
        f'<header><nav><a href="{escape(index)}">All campaigns</a></nav><h1>{escape(campaign.question)}</h1>'
        f'<p class="answer">{escape(answer.sentence)}</p>'
        f'<p class="verdict"><span class="chip {look}">{escape(verdict)}</span></p>'
        f"{_finding(answer.finding)}</header>"
        f'<section class="first">{main}{_table(results, evidence, answer)}</section>'
    )


def figure_of(figure: Figure | HeatMap, kind: str = "") -> str:
    """A figure with its title and note."""
    unit = "" if isinstance(figure, HeatMap) else f'<small class="unit">{escape(_unit(figure))}</small>'
    return (
        f'<figure class="{kind}"><figcaption><strong>{escape(figure.title)}</strong><span>{escape(figure.note)}</span>'
        f"</figcaption>{unit}{drawn(figure)}</figure>"
    )


def _unit(figure: Figure) -> str:
    return {"µs": "ms", "s": "seconds"}.get(figure.y_title, figure.y_title)


def _finding(finding: Finding | None) -> str:
    if finding is None:
        return ""
    return (
        f'<dl class="finding"><dt>The document</dt><dd>{escape(finding.says)}</dd>'
        f'<dt>Here</dt><dd><strong class="{LOOKS[finding.agreement]}">{finding.agreement.value}</strong>: '
        f"{escape(finding.why)}</dd></dl>"
    )


def _table(results: Results, evidence: Evidence, answer: Answer) -> str:
    rows = "".join(_row(results, evidence, shown) for shown in answer.shown[:MOST_SHOWN])
    if (more := len(answer.shown) - MOST_SHOWN) > 0:
        rows += f'<tr><td class="text" colspan="4">and {more} more, below in “Every value”</td></tr>'
    if not rows:
        return ""
    head = (
        '<tr><th class="text">what</th><th>value</th><th class="text">95 % interval, doubts</th>'
        '<th class="text">held back by</th></tr>'
    )
    return f'<table class="shown">{head}{rows}</table>'


def _row(results: Results, evidence: Evidence, shown: Shown) -> str:
    metrics = {metric.name: metric for metric in results.campaign.experiment.metrics}
    metric, summary = metrics[shown.metric], shown.point.summary(shown.metric)
    if summary is None:
        why = ", ".join(reasons(shown.point, metrics.values())) or "not measured"
        return (
            f'<tr><td class="text">{escape(shown.name)}</td><td>–</td><td class="text">{escape(why)}</td><td></td></tr>'
        )
    value = quantity(summary.median, metric.unit)
    late = shown.point.summary(shown.beside) if shown.beside else None
    beside = f"<small>{escape(_beside(metrics[shown.beside].title, late.median))}</small>" if late else ""
    doubts = reasons(shown.point, [replace(metric, main=True)])
    sure = interval(summary, metric.unit) if summary.interval else ""
    said = "; ".join(filter(None, [sure, *doubts]))
    verdicts = evidence.of_point(results, shown.point.store, shown.point.levels)
    used_up = resources_text(verdicts) if verdicts else "not known"
    look = ' class="hollow"' if doubts else ""
    return (
        f'<tr{look}><td class="text">{escape(shown.name)}</td><td>{escape(value)}{beside}</td>'
        f'<td class="text">{escape(said)}</td><td class="text">{escape(used_up)}</td></tr>'
    )


def _beside(title: str, late_us: float) -> str:
    kind = "p99" if "99th" in title else "median" if "median" in title else "mean"
    return f"{kind} {quantity(late_us, 'µs')}"
