"""Whether documents say what is published, and whether every figure of performance in them says where it is from."""

import re
from collections.abc import Iterator
from pathlib import Path

from harness.documents import tables
from harness.documents.marks import MARKED, Sources
from harness.documents.marks import rewritten as with_marks
from harness.files import write_whole

# Those whose figures are generated.
DOCUMENTS = (
    "README.md",
    "docs/campaigns.md",
    "docs/cassandra.md",
    "docs/server.md",
    "docs/sizing.md",
    "results/README.md",
)

# Left out before unmarked figures are looked for: code, tables that are generated, what is marked, places of links.
_SILENT = re.compile(
    r"```.*?```|<!-- table .*?<!-- end -->|`[^`\n]*`|\]\([^)\n]*\)|[0-9][0-9,.]*<!-- (?:theirs|setting) -->", re.DOTALL
)
# A rate, a latency, or a ratio with two decimals, which is no part of a version.
_PERFORMANCE = re.compile(
    r"""[0-9][0-9,.]*\s?(?:
        [KMG]?/s\b | (?:thousand|million)?\s?(?:operations|gets|reads|inserts|puts|requests)?/s\b
        | [KM]?B/s\b | (?:requests\s|gets\s|inserts\s|reads\s)?(?:a|per)\ssecond\b | µs\b | ms\b
    ) | (?<!\.)\b[0-9]\.[0-9]{2}\b(?!\.[0-9])""",
    re.VERBOSE,
)
_CONTEXT = 40


def rewritten(document: str, sources: Sources) -> str:
    """A document as it should be."""
    path = sources.checkout / document
    return with_marks(tables.rewritten(path.read_text(encoding="utf-8"), sources, path.parent), sources)


def drifted(document: str, sources: Sources) -> list[str]:
    """The lines of a document that are not as they should be, with their numbers."""
    now = (sources.checkout / document).read_text(encoding="utf-8").splitlines()
    then = rewritten(document, sources).splitlines()
    if len(now) != len(then):
        return [f"{document}: {len(now)} lines, and {len(then)} with every table as it is published"]
    return [
        f"{document}:{number}: {old.strip()} -> {new.strip()}"
        for number, (old, new) in enumerate(zip(now, then, strict=True), 1)
        if old != new
    ]


def unmarked(text: str) -> Iterator[str]:
    """Figures of performance that say neither where they come from nor that they are others' or chosen."""
    plain = MARKED.sub(lambda found: _blank(found[0]), _SILENT.sub(lambda found: _blank(found[0]), text))
    for found in _PERFORMANCE.finditer(plain):
        number = text.count("\n", 0, found.start()) + 1
        around = plain[max(0, found.start() - _CONTEXT) : found.end() + _CONTEXT].replace("\n", " ").strip()
        yield f"line {number}: {found[0]} in `{around}`"


def _blank(text: str) -> str:
    """As many lines, without a figure: what is around keeps its line."""
    return "x" + "\n" * text.count("\n")


def write(sources: Sources) -> list[Path]:
    """Writes the documents as they should be; returns those that were not."""
    changed = []
    for document in DOCUMENTS:
        path = sources.checkout / document
        text = rewritten(document, sources)
        if text != path.read_text(encoding="utf-8"):
            write_whole(path, text)
            changed.append(path)
    return changed
