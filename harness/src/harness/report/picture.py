"""Draws one figure as an SVG file for a README, which shows no page: the page's colours, light and dark, are inside."""

import io
import re
from importlib import resources
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from harness.report.charts import LEAST_JOINED
from harness.report.figure import Figure, Look, Series, ranked
from harness.report.names import store_colour

# Stand-ins for the colours of the style sheet: no drawing has these by chance.
_STAND_INS = {
    "#0a0b01": "--ink", "#0a0b02": "--soft", "#0a0b03": "--grid", "#0a0b04": "--card",
    "#0a0b05": "--ceiling", "#0a0b06": "--published",
    "#0a0c00": "--c0", "#0a0c01": "--c1", "#0a0c02": "--c2", "#0a0c03": "--c3", "#0a0c04": "--c4", "#0a0c05": "--c5",
    "#0a0c06": "--c6", "#0a0c07": "--c7", "#0a0c08": "--c8",
}  # fmt: skip
_INK, _SOFT, _GRID, _CARD, _CEILING, _PUBLISHED, *_OURS = _STAND_INS
_MARKERS = "os^D"
_DASHES: tuple[Any, ...] = ("solid", (0, (4, 1.5)), (0, (1.5, 1.5)))
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10, "text.color": _INK,
    "axes.edgecolor": _GRID, "axes.labelcolor": _SOFT, "xtick.color": _SOFT, "ytick.color": _SOFT,
    "axes.facecolor": "none", "figure.facecolor": "none", "grid.color": _GRID, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip
# Inches, at 72 points each.
_SIZE = (10.0, 4.4)
_WIDTH = 900


def picture(figure: Figure, salt: str) -> str:
    """The figure as the text of an SVG file; `salt` keeps its ids the same each time."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        drawn = _svg(_drawing(figure))
    sheet = resources.files("harness.report").joinpath("style.css").read_text(encoding="utf-8")
    colours = sheet[: sheet.index("* {")].replace(":root", "svg")
    style = f"<style>{colours}svg {{ background: var(--card); font-family: system-ui, sans-serif; }}</style>"
    end = drawn.index(">") + 1
    return f'{drawn[: end - 1]} width="{_WIDTH}">{style}{drawn[end:]}'


def _svg(drawing: Drawing) -> str:
    target = io.StringIO()
    drawing.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    # Comments repeat every text, and the metadata names the drawing program's vocabulary.
    text = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"#0a0[bc]0\d", lambda found: f"var({_STAND_INS[found[0]]})", text)
    text = re.sub(r"font: (?:\d+ )?([\d.]+)px[^;\"]*", r"font-size: \1px", text)
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r' height="[\d.]+pt"', "", text, count=1), count=1)


def _drawing(figure: Figure) -> Drawing:
    drawing = Drawing(figsize=_SIZE, layout="constrained")
    axes = drawing.add_subplot()
    _scale(axes, figure)
    for series, rank in ranked(figure):
        _series(axes, series, rank)
    if figure.level is not None:
        level, name = figure.level
        axes.axhline(level, color=_CEILING, linewidth=1, linestyle=(0, (5, 3)), label=name)
    axes.set_xlabel(figure.x_title)
    axes.set_ylabel(figure.y_title)
    axes.grid(axis="y", linewidth=0.8)
    drawing.legend(loc="outside upper left", ncols=2)
    return drawing


def _scale(axes: Axes, figure: Figure) -> None:
    xs = sorted({mark.x for series in figure.series if series.look is not Look.PUBLISHED for mark in series.marks})
    if figure.x_log and min(xs, default=1.0) > 0:
        axes.set_xscale("log", base=2)
    axes.set_xticks(xs, [compact(x) for x in xs])
    axes.xaxis.set_minor_locator(NullLocator())
    if figure.y_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        highest = max((mark.high for series in figure.series for mark in series.marks), default=1.0)
        axes.set_ylim(0, 1.06 * max(highest, figure.level[0] if figure.level else 0.0))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))


def _series(axes: Axes, series: Series, rank: int) -> None:
    xs, ys = [mark.x for mark in series.marks], [mark.y for mark in series.marks]
    if series.look is not Look.OURS:
        color, dashes = (_CEILING, (0, (5, 3))) if series.look is Look.CEILING else (_PUBLISHED, (0, (1, 2)))
        marker = "" if series.look is Look.CEILING else "x"
        axes.plot(xs, ys, color=color, linestyle=dashes, linewidth=1.6, marker=marker, label=series.name)
        return
    color = _OURS[int(store_colour(series.store)[1:])]
    style = _DASHES[rank % len(_DASHES)] if len(xs) >= LEAST_JOINED else "none"
    axes.plot(xs, ys, color=color, linestyle=style, linewidth=1.8, label=series.name)
    axes.vlines(xs, [mark.low for mark in series.marks], [mark.high for mark in series.marks], color=color, linewidth=1)
    for mark in series.marks:
        inside = _CARD if mark.doubtful else color
        axes.plot([mark.x], [mark.y], color=color, marker=_MARKERS[rank % 4], markersize=5, markerfacecolor=inside)


def compact(value: float) -> str:
    """A number as an axis shows it: `0.5`, `64`, `1024`, `20K`, `1.5M`."""
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "K")):
        if size >= unit:
            return f"{value / (1e3 if name == 'K' else unit):.3g}{name}"
    return f"{value:.0f}" if size >= 100 else f"{value:.3g}"
