"""Figures as what the charts of a page are drawn from: one JSON value each, in a reader's units. `chart.js` draws them
with uPlot, which lies beside it, so that a page needs no network."""

import json
import math
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

from harness.report.figure import Figure, HeatMap, Look, Mark, Series, ranked
from harness.report.names import store_colour
from harness.report.panels import Panel
from harness.report.thinning import shortened, thin

# Above so many points a line is drawn without a mark for each.
MANY_MARKS = 40
# Fewer points than this are not joined: a line would claim what lies between them.
LEAST_JOINED = 3
# The axis of percentiles ends before 100, which it would never reach.
MOST_PERCENT = 99.999
# Colours of lines that are no store's.
_COLOURS = 6

# The version that lies here; `make test-harness` checks the file's SHA-256.
UPLOT_VERSION = "1.6.32"

Chart = dict[str, Any]


def chart(figure: Figure) -> Chart:
    """A figure, ready for `chart.js`."""
    times, unit = _unit(figure.y_title)
    drawn = [_series(figure, series, times, rank) for series, rank in ranked(figure)]
    _apart(figure, drawn)
    if figure.level is not None:
        value, name = figure.level
        drawn.append({"name": name, "look": "level", "level": value * times})
    return {
        "x": figure.x_title,
        "y": unit,
        "xLog": figure.x_log and _above_zero(figure, 0),
        "yLog": figure.y_log,
        "percentiles": figure.percentiles,
        "categories": list(figure.categories),
        "spans": [[round(began, 2), round(ended, 2)] for began, ended in figure.spans],
        "moments": [[round(at, 2), name] for at, name in figure.moments],
        "series": drawn,
    }


def _unit(y_title: str) -> tuple[float, str]:
    """What values are multiplied by, and the unit that they then have."""
    return (1e-3, "ms") if y_title == "µs" else (1.0, y_title)


def _above_zero(figure: Figure, axis: int) -> bool:
    """Whether a logarithm has a place for all: zero bytes copied have none."""
    return all(mark[axis] > 0 for series in figure.series for mark in series.marks)


def _series(figure: Figure, series: Series, times: float, rank: int) -> Chart:
    joined = not figure.categories and len(series.marks) >= LEAST_JOINED and series.look is not Look.PREDICTED
    marked = len(series.marks) <= MANY_MARKS
    marks = series.marks if marked else _thinned(series.marks)
    return {
        "name": series.name,
        "look": series.look.value,
        "colour": store_colour(series.store) if series.look is Look.OURS else series.look.value,
        "dash": rank,
        "joined": joined or not marked or series.look is Look.CEILING,
        "marked": marked,
        "died": series.died,
        "marks": [_mark(figure, mark, times, marked) for mark in marks],
    }


def _thinned(marks: Sequence[Mark]) -> list[Mark]:
    kept = thin([(mark.x, mark.y) for mark in marks])
    return [Mark(x, y, y, y) for x, y in kept if y is not None]


def _mark(figure: Figure, mark: Mark, times: float, marked: bool) -> list[float | int | None]:
    x = _nines(mark.x) if figure.percentiles else round(mark.x, 3)
    y = None if figure.y_log and mark.y <= 0 else shortened(mark.y * times)
    if not marked or (mark.low == mark.high and not mark.doubtful):
        return [x, y]
    least = 0.0 if not figure.y_log else 0.02 * mark.y
    return [x, y, shortened(max(mark.low, least) * times), shortened(mark.high * times), int(mark.doubtful)]


def _nines(percent: float) -> float:
    """Nines: each further one is as long as the one before."""
    return round(-math.log10(1 - min(percent, MOST_PERCENT) / 100), 4)


def _apart(figure: Figure, drawn: Sequence[Chart]) -> None:
    """Over names the series stand side by side."""
    ours = [of for of in drawn if of["look"] == Look.OURS.value]
    if not figure.categories or not ours:
        return
    width = 0.7 / len(ours)
    for rank, series in enumerate(ours):
        for mark in series["marks"]:
            mark[0] = round(mark[0] + (rank - (len(ours) - 1) / 2) * width, 3)


def panel_chart(panel: Panel) -> Chart:
    """What a run used over time, ready for `chart.js`."""
    title, _, unit = panel.title.rpartition(", ")
    times, unit = _unit(unit)
    return {
        "title": title,
        "x": "seconds since the run began",
        "y": unit,
        "yLog": unit == "ms",
        "low": True,
        "series": [
            {
                "name": name,
                "look": "ours",
                "colour": f"c{rank % _COLOURS}",
                "dash": rank // _COLOURS,
                "joined": True,
                "marked": False,
                "marks": [[x, None if y is None else shortened(y * times)] for x, y in thin(line)],
            }
            for rank, (name, line) in enumerate(panel.lines)
        ],
    }


def drawn(figure: Figure | HeatMap) -> str:
    """A figure as HTML: a table of cells, or the place of a chart."""
    return heat_map(figure) if isinstance(figure, HeatMap) else place(chart(figure))


def place(of: Chart) -> str:
    """Where a chart is drawn, with what it is drawn from."""
    text = json.dumps(of, separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/")
    return f'<div class="chart"><script type="application/json">{text}</script></div>'


def heat_map(figure: HeatMap) -> str:
    """Cells by value, the darker the more, as a table."""
    top = max((cell.value for cell in figure.cells), default=1.0) or 1.0
    found = {(cell.row, cell.column): cell for cell in figure.cells}
    head = "".join(f"<th>{escape(column)}</th>" for column in figure.columns)
    rows = []
    for row in figure.rows:
        cells = []
        for column in figure.columns:
            cell = found.get((row, column))
            if cell is None:
                cells.append("<td></td>")
                continue
            share = 6 + 50 * cell.value / top
            strong = ' class="strong"' if cell.strong else ""
            cells.append(f'<td{strong} style="--share: {share:.0f}%">{escape(cell.text)}</td>')
        rows.append(f"<tr><th>{escape(row)}</th>{''.join(cells)}</tr>")
    return f'<table class="heat"><tr><th>{escape(figure.x_title)}</th>{head}</tr>{"".join(rows)}</table>'


def script() -> str:
    """All that draws charts, as a page has it inside."""
    parts = (_text("uPlot.iife.min.js"), _text("chart.js"))
    return "".join(f"<script>{part}</script>" for part in parts)


def styles() -> str:
    """The style of charts and pages."""
    return _text("uPlot.min.css") + _text("style.css")


def _text(name: str) -> str:
    return resources.files("harness.report").joinpath(name).read_text(encoding="utf-8")
