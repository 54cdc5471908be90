"""Writes the report of a campaign: one HTML file that needs no other and no network."""

from html import escape
from pathlib import Path

from harness.files import write_whole
from harness.report.answers.registry import answer_of
from harness.report.charts import script, styles
from harness.report.details import details
from harness.report.evidence import Evidence, raw_evidence
from harness.report.figures.registry import figures_of
from harness.report.first_screen import first_screen
from harness.report.verdict import below
from harness.results import Results

REPORT = "report.html"
# From a campaign's folder to the page that lists all.
INDEX = "../../index.html"


def write_report(results: Results, checkout: Path) -> Path:
    """Writes the report into the campaign's folder, beside the raw files that it links to."""
    path = results.folder / REPORT
    write_whole(path, report_html(results, raw_evidence(results), checkout, raw_beside=True))
    return path


def report_html(
    results: Results,
    evidence: Evidence,
    checkout: Path,
    raw_beside: bool = False,
    curves_from: str = "",
    index: str = INDEX,
) -> str:
    """The report as HTML. Paths below the checkout are shown from there on, since a command is repeated in
    another checkout; raw files are linked where they lie beside the report."""
    answer, figures = answer_of(results), list(figures_of(results))
    main = figures.pop(answer.figure) if figures else None
    body = first_screen(results, evidence, answer, main, index)
    body += details(results, evidence, figures, raw_beside, curves_from)
    return below(checkout, page(results.campaign.title, body, charts=True))


def page(title: str, body: str, charts: bool = False) -> str:
    """A whole page around a body of HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{styles()}</style></head>\n<body>{body}"
        f"{script() if charts else ''}</body></html>\n"
    )
