"""Writes the page that lists all campaigns which have a report."""

import json
from html import escape
from pathlib import Path

from harness.files import write_whole
from harness.report.page import REPORT, page


def _about(folder: Path) -> Path:
    """The file that says where a report comes from: a published one has its summary."""
    raw = folder / "campaign.json"
    return raw if raw.exists() else folder / "summary.json"


def write_index(results: Path) -> Path:
    """Writes `index.html` into the folder of all campaigns."""
    rows = []
    for report in sorted(results.glob(f"*/*/{REPORT}")):
        folder = report.parent
        about = json.loads(_about(folder).read_text(encoding="utf-8"))
        origin = about["origin"]
        link = f'<a href="{escape(folder.parent.name)}/{escape(folder.name)}/{REPORT}">{escape(folder.parent.name)}</a>'
        cells = (escape(folder.name), escape(origin["commit"]), escape(origin["began_utc"]))
        rows.append(f"<tr><td>{link}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "<tr><th>campaign</th><th>variant</th><th>commit</th><th>begun</th></tr>"
    body = (
        "<header><h1>Campaigns</h1><p>Declared experiments: each says what was measured on which machine, how, and how "
        f'sure it is.</p></header><section><div class="table"><table>{head}{"".join(rows)}</table></div></section>'
    )
    path = results / "index.html"
    write_whole(path, page("Campaigns", body))
    return path
