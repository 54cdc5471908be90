"""The forms of an answer: text for a terminal, one page for a browser, values for programs."""

import dataclasses
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.sizing.answer import Section, sections
from harness.sizing.curves import Curve
from harness.sizing.findings import cheapest, trials
from harness.sizing.latency import Late
from harness.sizing.solve import MORE_LOAD, Answer, Sizing

FORMAT = 1


def text(sizing: Sizing) -> str:
    """For a terminal."""
    return "\n\n".join("\n".join(_text_of(section)) for section in sections(sizing))


def _text_of(section: Section) -> list[str]:
    indent = "  " if section.title else ""
    return [
        *([f"{section.title}:"] if section.title else []),
        *(indent + line for line in columns(section.rows)),
        *(indent + line for line in section.lines),
    ]


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows one below the other, each column as wide as its widest cell."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [line.rstrip() for line in lines]


STYLE = """\
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 1rem auto; max-width: 86rem; padding: 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: left; white-space: nowrap; }
tr { border-bottom: 1px solid color-mix(in srgb, currentcolor 25%, transparent); }
tr.refused { opacity: .6; }
tr.measured td:last-child { font-weight: bold; }
summary { cursor: pointer; font-weight: bold; margin-top: .8rem; }
@media (max-width: 60rem) {
  tr:first-child { display: none; }
  tr { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); padding: .4rem 0; }
  td { padding: 0 .4rem; white-space: normal; }
  td[data-head]:not([data-head=""])::before { content: attr(data-head) ": "; opacity: .7; }
}
"""


def page(sizing: Sizing) -> str:
    """For a browser: one file without any other. What must be known to read the answer is open, the rest is folded."""
    title = html.escape(sizing.requirement.title or "A requirement, sized")
    body = "\n".join(_html_of(section) for section in sections(sizing))
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head>\n<body>{body}</body></html>\n'


def _html_of(section: Section) -> str:
    if section.is_title:
        return f"<h1>{html.escape(section.lines[0])}</h1>"
    parts = [f'<div class="wide">{_table(section.rows)}</div>'] if section.rows else []
    if section.lines and section.title:
        parts.append("<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in section.lines) + "</ul>")
    else:
        parts += [f"<p>{html.escape(line)}</p>" for line in section.lines]
    inside = "\n".join(parts)
    if not section.title:
        return inside
    return f"<details><summary>{html.escape(section.title)}</summary>{inside}</details>"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    head, *body = rows
    lines = ["<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in head) + "</tr>"]
    for row in body:
        kind = f' class="{html.escape(row[-1])}"' if row[-1] in ("measured", "guess", "refused") else ""
        cells = (
            f'<td data-head="{html.escape(name)}">{html.escape(cell)}</td>'
            for name, cell in zip(head, row, strict=True)
        )
        lines.append(f"<tr{kind}>{''.join(cells)}</tr>")
    return "<table>" + "".join(lines) + "</table>"


def data(sizing: Sizing) -> dict[str, Any]:
    """The answer as plain values."""
    return {
        "format": FORMAT,
        "requirement": sizing.requirement.model_dump(mode="json"),
        "answers": [_answer(of) for of in sizing.answers],
        "cheapest": cheapest(sizing),
        "held_out": [{**dataclasses.asdict(of), "error": of.error} for of in sizing.held_out],
        "trials": [{**dataclasses.asdict(of), "verdict": of.words} for of in trials(sizing.held_out)],
        "untried": list(sizing.untried),
    }


def _answer(of: Answer) -> dict[str, Any]:
    start = {"node": of.node, "stored": of.way.name, "level": of.level, "grade": of.grade}
    if of.refused is not None:
        return {**start, "reason": of.refused}
    return {
        **start,
        "nodes": {"middle": of.nodes, "least": of.least, "most": of.most},
        "usd": {"middle": of.usd, "least": of.least_usd, "most": of.most_usd},
        "p99_ms": {it.kind: _late(it) for it in of.late},
        "binds": of.binds,
        "nodes_by_resource": dict(of.by_resource),
        "more_load": {"times": MORE_LOAD, "nodes": of.more_nodes, "usd": of.more_usd, "chance": of.more_chance},
        "guesses": list(of.guesses),
        "measure_next": {"what": of.narrow, "part_of_band": of.narrowed} if of.narrow else None,
        "rests_on": {kind: [_curve(it) for it in curves] for kind, curves in of.curves.items()},
        "notes": list(of.notes),
    }


def _late(of: Late) -> Mapping[str, float | None]:
    return {
        "closed_loop": of.closed_ms,
        "at_its_own_rate": of.open_ms,
        "its_rate_per_s": of.open_per_s,
        "limit": of.limit_ms,
        "used": of.used,
        "used_at_its_own_rate": of.open_used,
    }


def _curve(of: Curve) -> dict[str, Any]:
    values = dataclasses.asdict(of)
    return {**values, "way": of.way.name}


def json_text(sizing: Sizing) -> str:
    """The answer for programs."""
    return json.dumps(data(sizing), indent=1)
