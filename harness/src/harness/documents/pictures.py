"""The pictures that documents show, drawn from what is published: `results/NAME/VARIANT/figure-N.svg` is the Nth figure
of that report."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.documents.marks import Sources
from harness.errors import HarnessError
from harness.files import write_whole
from harness.report.figure import Figure
from harness.report.figures.registry import figures_of
from harness.report.picture import picture

# No page of ours shows a picture elsewhere.
SHOWN_IN = "README.md"
_PICTURE = re.compile(r"!\[[^\]]*\]\((results/(.*)/(\w+)/figure-(\d+)\.svg)\)")


def pictures(sources: Sources) -> Iterator[tuple[Path, str]]:
    """The place and the text of every picture; raises HarnessError where no result has its figure."""
    text = (sources.checkout / SHOWN_IN).read_text(encoding="utf-8")
    for place, name, _, number in _PICTURE.findall(text):
        published = sources.published.get(name)
        if published is None:
            raise HarnessError(f"{SHOWN_IN} shows {place}, and nothing is published of {name!r}")
        figures = figures_of(published.results)
        found = figures[int(number) - 1] if int(number) <= len(figures) else None
        if not isinstance(found, Figure):
            raise HarnessError(f"{SHOWN_IN} shows {place}, and {name} has no such figure")
        yield sources.checkout / place, picture(found, place)


def write_pictures(sources: Sources) -> list[Path]:
    """Draws the pictures; returns those that were not so."""
    changed = []
    for path, text in pictures(sources):
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)
            changed.append(path)
    return changed
