"""Writes the page that lists all campaigns, each with its answer."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from harness.files import write_whole
from harness.report.answers.registry import answer_of
from harness.report.first_screen import LOOKS
from harness.report.page import REPORT, page
from harness.report.verdict import verdict_of
from harness.results import Results

INDEX = "index.html"


@dataclass(frozen=True)
class Entry:
    """A report, and where it lies below the folder of the index."""

    folder: Path
    results: Results

    @property
    def title(self) -> str:
        """The campaign's name, with its slice, and the folder above it where that says of which machine it is."""
        *above, name, _ = self.folder.parts
        return ", ".join(filter(None, [name, self.results.variant.slice.replace("-", " "), " ".join(above)]))


def write_index(target: Path, entries: Iterable[Entry]) -> Path:
    """Writes `index.html` into the folder of all reports."""
    rows = "".join(map(_row, sorted(entries, key=lambda entry: entry.title)))
    body = (
        "<header><h1>Campaigns</h1><p>Declared experiments. Each report says what was found, whether it may be quoted, "
        f'on which machine it was measured, and how.</p></header><section class="index">{rows}</section>'
    )
    path = target / INDEX
    write_whole(path, page("Campaigns", body))
    return path


def _row(entry: Entry) -> str:
    results = entry.results
    answer = answer_of(results)
    verdict, look = verdict_of(results)
    finding = answer.finding
    held = (
        f' <span class="chip {LOOKS[finding.agreement]}">the document: {finding.agreement.value}</span>'
        if finding
        else ""
    )
    here = results.origin.identity
    where = f"{results.variant.name}, {here.cpu}, {here.cores} cores, {results.origin.began_utc[:10]}"
    return (
        f'<article><h2><a href="{escape(entry.folder.as_posix())}/{REPORT}">{escape(entry.title)}</a></h2>'
        f'<p class="question">{escape(results.campaign.question)}</p><p class="answer">{escape(answer.sentence)}</p>'
        f'<p><span class="chip {look}">{escape(verdict)}</span>{held}</p><p><small>{escape(where)}</small></p>'
        "</article>"
    )
