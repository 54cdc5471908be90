"""Draws the reports of all published results."""

from collections.abc import Callable
from pathlib import Path

from harness.files import write_whole
from harness.plan import Campaign
from harness.report.index import Entry, write_index
from harness.report.page import REPORT, report_html
from harness.report.publication import SUMMARY, Published, read_with_evidence


def published_folders(results: Path) -> list[Path]:
    """The folders of published results, below the one of all: also those from other machines."""
    return sorted(path.parent.relative_to(results) for path in results.glob(f"**/{SUMMARY}"))


def best_folders(results: Path) -> dict[str, Path]:
    """Of each campaign, by its name with the folder above it, and of each slice of one, `ycsb/threads`, the published
    variant that counts, below the folder of all: the night's where there is one."""
    best: dict[str, Path] = {}
    for folder in published_folders(results):
        size, _, slice_ = folder.name.partition("-")
        name = (folder.parent / slice_).as_posix()
        if name not in best or size == "night":
            best[name] = folder
    return best


def read_all(results: Path, campaign_of: Callable[[str], Campaign]) -> dict[Path, Published]:
    """All published results, by their folders."""
    return {of: read_with_evidence(results / of, campaign_of(of.parent.name)) for of in published_folders(results)}


def write_reports(results: Path, target: Path, checkout: Path, campaign_of: Callable[[str], Campaign]) -> Path:
    """Writes a report for each into the same place below `target`, and the index of all; returns the index."""
    entries = []
    for folder, published in read_all(results, campaign_of).items():
        html = report_html(
            published.results,
            published.evidence,
            checkout,
            curves_from=published.curves_from,
            index=f"{'../' * len(folder.parts)}index.html",
        )
        write_whole(target / folder / REPORT, html)
        entries.append(Entry(folder, published.results))
    return write_index(target, entries)
