"""Writes the page that lists all campaigns which have a report."""

import json
import re
from html import escape
from pathlib import Path

from harness.files import write_whole
from harness.report.page import REPORT, page

# What a report says of itself, in HTML already.
_QUESTION = re.compile(r"<h1>.*?</h1><p>(.*?)</p>")
_VERDICT = re.compile(r'<li class="(good|warn|bad)">(.*?)</li>')


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
        text = report.read_text(encoding="utf-8")
        question, verdict = _QUESTION.search(text), _VERDICT.search(text)
        asked = question[1] if question else ""
        said = f'<span class="{verdict[1]}">{verdict[2]}</span>' if verdict else ""
        cells = (escape(folder.name), escape(origin["commit"]), escape(origin["began_utc"]))
        words = f'<td>{link}</td><td class="text">{asked}</td><td class="text">{said}</td>'
        rows.append(f"<tr>{words}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = (
        '<tr><th>campaign</th><th class="text">question</th><th class="text">verdict</th>'
        "<th>variant</th><th>commit</th><th>begun</th></tr>"
    )
    body = (
        "<header><h1>Campaigns</h1><p>Declared experiments: each says what was measured on which machine, how, and how "
        f'sure it is.</p></header><section><div class="table"><table>{head}{"".join(rows)}</table></div></section>'
    )
    path = results / "index.html"
    write_whole(path, page("Campaigns", body))
    return path
