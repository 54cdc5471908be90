"""Draws figures as SVG for a page: text stays text, and every colour is one of the page's, so that one drawing serves
light and dark."""

import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from harness.node_usage import NodeSample
from harness.report.figures import Figure, HeatMap, Look, Series
from harness.sampling import HostSample, ProcessSample

# Stand-ins for the colours of the style sheet: no drawing has these by chance.
_STAND_INS = {
    "#0a0b01": "--ink", "#0a0b02": "--soft", "#0a0b03": "--grid", "#0a0b04": "--card",
    "#0a0b05": "--ceiling", "#0a0b06": "--published",
    "#0a0c00": "--c0", "#0a0c01": "--c1", "#0a0c02": "--c2", "#0a0c03": "--c3", "#0a0c04": "--c4", "#0a0c05": "--c5",
}  # fmt: skip
_INK, _SOFT, _GRID, _CARD, _CEILING, _PUBLISHED, *_OURS = _STAND_INS
_MARKERS = "osD^vP"
# Of lines beyond as many as there are colours.
_DASHES = ("solid", (0, (4, 1.5)), (0, (1.5, 1.5)))

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10, "text.color": _INK,
    "axes.edgecolor": _GRID, "axes.labelcolor": _SOFT, "xtick.color": _SOFT, "ytick.color": _SOFT,
    "axes.facecolor": "none", "figure.facecolor": "none", "grid.color": _GRID, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip

FloatArray = NDArray[np.float64]
# The axis of percentiles ends before 100, which it would never reach.
MOST_PERCENT = 99.999

# Points of a run that a time series names.
MOST_NAMES = 6
# Letters of a panel's legend for each inch of its width, and what the line before a name takes of them.
LEGEND_LETTERS = 10
LEGEND_HANDLE_LETTERS = 5
# A process without a sample for longer than this was not there.
GAP_SECONDS = 2.5
# Less than this on the network is the harness asking whether servers answer.
QUIET_BYTES_PER_S = 100_000

# With more bars than this, what is written above one would lie over the next.
MOST_NAMED_BARS = 16

# A line of more points than this is drawn without a mark for each.
MANY_MARKS = 40

# Inches at 72 points each; a page shows the one that fits its width.
WIDE = 10.0
NARROW = 4.6
# A letter of a name below an axis, with its part of the space to the next name.
LETTER_INCHES = 0.085


def draw(figure: Figure | HeatMap, salt: str) -> str:
    """A figure twice, wide and narrow, as HTML; `salt` keeps the ids of several drawings on a page apart."""
    return _both(lambda width: _figure(figure, width), salt)


def draw_alone(figure: Figure | HeatMap, salt: str) -> str:
    """A figure as an SVG file of its own, with the page's colours, light and dark, inside."""
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        drawn = _svg(_figure(figure, WIDE))
    sheet = resources.files("harness.report").joinpath("style.css").read_text(encoding="utf-8")
    colours = sheet[: sheet.index("* {")].replace(":root", "svg")
    style = f"<style>{colours}svg {{ background: var(--card); font-family: system-ui, sans-serif; }}</style>"
    end = drawn.index(">") + 1
    return drawn[: end - 1] + ' width="900">' + style + drawn[end:]


def _both(drawing_of: Callable[[float], Drawing], salt: str) -> str:
    parts = []
    for name, width in (("wide", WIDE), ("narrow", NARROW)):
        with matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"{salt}-{name}"}):
            parts.append(f'<div class="{name}">{_svg(drawing_of(width))}</div>')
    return "".join(parts)


def _svg(drawing: Drawing) -> str:
    target = io.StringIO()
    drawing.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    text = target.getvalue()
    text = text[text.index("<svg") :]
    # Comments repeat every text, and the metadata names the drawing program's vocabulary.
    text = re.sub(r"<!--.*?-->\s*|<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"#0a0[bc]0\d", lambda found: f"var({_STAND_INS[found[0]]})", text)
    text = re.sub(r"font: (?:\d+ )?([\d.]+)px[^;\"]*", r"font-size: \1px", text)
    # The page decides about the width; the height follows.
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r"<svg \1", re.sub(r' height="[\d.]+pt"', "", text, count=1), count=1)


def _figure(figure: Figure | HeatMap, width: float) -> Drawing:
    return _heat_map(figure, width) if isinstance(figure, HeatMap) else _chart(figure, width)


def _heat_map(figure: HeatMap, width: float) -> Drawing:
    """Cells by value: the darker, the more. Text is ink on every shade, so a shade never covers more than half."""
    drawing = Drawing(figsize=(width, 0.55 * len(figure.rows) + 1.1), layout="constrained")
    axes = drawing.add_subplot()
    top = max((cell.value for cell in figure.cells), default=1.0) or 1.0
    for cell in figure.cells:
        x, y = figure.columns.index(cell.column), figure.rows.index(cell.row)
        shade = Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=_OURS[0], alpha=0.06 + 0.5 * cell.value / top)
        axes.add_patch(shade)
        weight = "bold" if cell.strong else "normal"
        axes.text(x, y, cell.text, ha="center", va="center", color=_INK, weight=weight, size=9)
        if cell.strong:
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, fill=False, edgecolor=_INK, linewidth=1.4))
    axes.set_xlim(-0.5, len(figure.columns) - 0.5)
    axes.set_ylim(len(figure.rows) - 0.5, -0.5)
    axes.set_xticks(range(len(figure.columns)), figure.columns)
    axes.set_yticks(range(len(figure.rows)), figure.rows)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xlabel(figure.x_title)
    return drawing


def _chart(figure: Figure, width: float) -> Drawing:
    height = 3.9 if width == WIDE else 3.7
    names = len(figure.series) + (figure.level is not None)
    columns = 3 if width == WIDE else 1
    legend_height = 0.22 * -(-names // columns) + 0.1
    drawing = Drawing(figsize=(width, height + legend_height), layout="constrained")
    axes = drawing.add_subplot()
    _scale(axes, figure, width)
    ours = [series for series in figure.series if series.look is Look.OURS]
    for series in figure.series:
        _series(axes, figure, series, ours)
    for began, ended in figure.spans:
        axes.axvspan(began, ended, color=_GRID, alpha=0.55, linewidth=0, zorder=0)
    if figure.level is not None:
        level, name = figure.level
        axes.axhline(level, color=_CEILING, linewidth=1, linestyle=(0, (5, 3)), label=name)
    axes.set_xlabel(figure.x_title)
    axes.set_ylabel(figure.y_title)
    axes.grid(axis="y", linewidth=0.8)
    if axes.get_legend_handles_labels()[1]:
        drawing.legend(loc="outside upper left", ncols=columns)
    return drawing


def _scale(axes: Axes, figure: Figure, width: float) -> None:
    if figure.percentiles:
        axes.set_xscale("function", functions=(_stretched, _squeezed))
        shown = [0, 50, 90, 99, 99.9, 99.99]
        axes.set_xticks(shown, [f"{percent:g} %" for percent in shown])
        axes.xaxis.set_minor_locator(NullLocator())
    xs = sorted({mark[0] for series in figure.series if series.look is not Look.PUBLISHED for mark in series.marks})
    if figure.x_log:
        axes.set_xscale("log", base=2)
    if figure.categories:
        names = axes.set_xticks(range(len(figure.categories)), figure.categories)
        if sum(map(len, figure.categories)) * LETTER_INCHES > width:
            for name in names:
                name.label1.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.5, len(figure.categories) - 0.5)
    elif not figure.percentiles and 0 < len(xs) <= 12 and all(x == int(x) for x in xs):
        axes.set_xticks(xs, [compact(x) for x in xs])
        axes.xaxis.set_minor_locator(NullLocator())
    if figure.y_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, 1.06 * _highest(figure))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))


def _stretched(percent: FloatArray) -> FloatArray:
    """Nines: each further one is as long as the one before."""
    left: FloatArray = 1.0 - np.minimum(np.asarray(percent, dtype=float), MOST_PERCENT) / 100
    return -np.log10(left)


def _squeezed(nines: FloatArray) -> FloatArray:
    left: FloatArray = np.power(10.0, -np.asarray(nines, dtype=float))
    return 100 * (1.0 - left)


def _highest(figure: Figure) -> float:
    """The top of a linear axis: intervals fit, unless one is so wide that it would flatten everything else."""
    marks = [mark for series in figure.series for mark in series.marks]
    medians = max((mark[1] for mark in marks), default=1.0)
    intervals = max((mark[3] for mark in marks), default=1.0)
    level = figure.level[0] if figure.level else 0.0
    return max(min(intervals, 1.6 * medians), level, 1e-9)


def _series(axes: Axes, figure: Figure, series: Series, ours: Sequence[Series]) -> None:
    if not series.marks:
        return
    xs = [mark[0] for mark in series.marks]
    ys = [mark[1] for mark in series.marks]
    if series.look is Look.PREDICTED:
        axes.plot(xs, ys, color=_INK, linestyle="none", marker="x", markersize=7, label=series.name)
        return
    if series.look is not Look.OURS:
        color, dashes = (_CEILING, (0, (5, 3))) if series.look is Look.CEILING else (_PUBLISHED, (0, (1, 2)))
        marker = "" if series.look is Look.CEILING else "x"
        axes.plot(xs, ys, color=color, linestyle=dashes, linewidth=1.6, marker=marker, label=series.name)
        return
    rank = ours.index(series)
    color = _OURS[rank % len(_OURS)]
    # The interval may reach below zero, which no rate does.
    lows = [
        max(0.0, mark[1] - mark[2]) if not figure.y_log else min(mark[1] - mark[2], 0.98 * mark[1])
        for mark in series.marks
    ]
    highs = [mark[3] - mark[1] for mark in series.marks]
    if figure.categories:
        width = 0.8 / len(ours)
        shifted = [x + (rank - (len(ours) - 1) / 2) * width for x in xs]
        if figure.y_log:
            # A bar has no foot on such an axis.
            axes.plot(shifted, ys, color=color, linestyle="none", marker=_MARKERS[rank % 6], label=series.name)
        else:
            bars = axes.bar(shifted, ys, 0.92 * width, color=color, label=series.name)
            # Bars next to much higher ones cannot be read off an axis.
            if len(figure.categories) * len(ours) <= MOST_NAMED_BARS:
                axes.bar_label(bars, [compact(y) for y in ys], color=_SOFT, fontsize=8, padding=2)
        if any(highs):
            axes.errorbar(shifted, ys, (lows, highs), fmt="none", ecolor=_INK, elinewidth=1, capsize=2)
        return
    marker = _MARKERS[rank % 6] if len(xs) <= MANY_MARKS else ""
    style = _DASHES[rank // len(_OURS) % len(_DASHES)]
    stalls = [x for x, y in zip(xs, ys, strict=True) if figure.y_log and y <= 0]
    if stalls:
        # A logarithm has no place for nothing: the line stops there, above a mark at the foot.
        ys = [y if y > 0 else math.nan for y in ys]
        foot = axes.get_xaxis_transform()
        axes.plot(stalls, [0.0] * len(stalls), color=color, linestyle="none", marker="v", transform=foot, clip_on=False)
    axes.plot(xs, ys, color=color, linestyle=style, linewidth=1.8, marker=marker, markersize=4.5, label=series.name)
    if series.died:
        axes.plot(xs[-1:], ys[-1:], color=color, linestyle="none", marker="X", markersize=12)
    if any(highs):
        axes.errorbar(xs, ys, (lows, highs), fmt="none", ecolor=color, elinewidth=1, capsize=2.5)


@dataclass(frozen=True)
class Timeline:
    """What one run used, second by second."""

    host: Sequence[HostSample]
    processes: Sequence[ProcessSample]
    # Of nodes whose disk is limited.
    nodes: Sequence[NodeSample]
    # Throughput where the experiment has it: name, then seconds and operations/s.
    rates: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    # The mean latency likewise, µs.
    latencies: Sequence[tuple[str, Sequence[tuple[float, float]]]]
    # Begin, end and name of each measured point.
    windows: Sequence[tuple[float, float, str]]


def draw_timeline(timeline: Timeline, salt: str) -> str:
    """The resources of a run over time, one above the other on one axis, as HTML."""
    return _both(lambda width: _timeline(timeline, width), salt)


def _timeline(timeline: Timeline, width: float) -> Drawing:
    panels = [_processor, _processes, _memory, _disk_operations, _disk_bytes]
    if any(of.loopback_bytes_per_s + of.network_bytes_per_s > QUIET_BYTES_PER_S for of in timeline.host):
        panels.append(_network)
    if any(sample.received_bytes_per_s + sample.sent_bytes_per_s > QUIET_BYTES_PER_S for sample in timeline.processes):
        panels.append(_traffic)
    if timeline.nodes:
        panels += [_node_operations, _node_bytes]
    if any(sample.heap_bytes for sample in timeline.processes):
        panels.insert(3, _heap)
    if timeline.latencies:
        panels.insert(0, _latency)
    if timeline.rates:
        panels.insert(0, _throughput)
    drawing = Drawing(figsize=(width, 1.55 * len(panels) + 0.4), layout="constrained")
    all_axes = drawing.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, panel in zip(all_axes, panels, strict=True):
        panel(axes, timeline)
        # Room for the legend above the lines.
        if axes.get_yscale() == "linear":
            axes.set_ylim(0, 1.35 * max(axes.get_ylim()[1], 1e-9))
        axes.margins(x=0.01)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
        axes.grid(axis="y", linewidth=0.8)
        for position, (began, ended, _) in enumerate(timeline.windows):
            if position % 2 == 0:
                axes.axvspan(began, ended, color=_GRID, alpha=0.55, linewidth=0, zorder=0)
        if labels := axes.get_legend_handles_labels()[1]:
            # Names that are wider than the panel would leave no room for it.
            columns = max(1, int(width * LEGEND_LETTERS / (max(map(len, labels)) + LEGEND_HANDLE_LETTERS)))
            axes.legend(loc="upper left", ncols=min(columns, 8), fontsize=8, handlelength=1.2)
    since = " since the run began" if width == WIDE else ""
    all_axes[-1].set_xlabel(f"seconds{since}; shaded: every other point")
    return drawing


def _throughput(axes: Axes, timeline: Timeline) -> None:
    for rank, (name, points) in enumerate(timeline.rates):
        axes.plot(*zip(*points, strict=True), **_line_of(rank, name, len(timeline.rates)))
    axes.set_ylabel("operations/s")


def _line_of(rank: int, name: str, count: int) -> dict[str, Any]:
    """How a point's line looks. Where there are many, one comes after the other, and names would fill the panel."""
    known = {"label": name} if count <= MOST_NAMES else {}
    return {"color": _OURS[rank % len(_OURS)], "linewidth": 1.4, **known}


def _processor(axes: Axes, timeline: Timeline) -> None:
    seconds = [sample.t_s for sample in timeline.host]
    names = ("user", "system", "iowait", "steal")
    parts = [[100 * getattr(sample, f"cpu_{name}") for sample in timeline.host] for name in names]
    axes.stackplot(seconds, *parts, colors=[_OURS[0], _OURS[1], _GRID, _OURS[4]], labels=names, step="pre")
    axes.set_ylim(top=100)
    axes.set_ylabel("cores, %")


def _latency(axes: Axes, timeline: Timeline) -> None:
    for rank, (name, points) in enumerate(timeline.latencies):
        axes.plot(*zip(*points, strict=True), **_line_of(rank, name, len(timeline.latencies)))
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("latency, µs")


def _processes(axes: Axes, timeline: Timeline) -> None:
    _by_process(axes, timeline, lambda sample: sample.cpu_cores)
    axes.set_ylabel("cores used")


def _memory(axes: Axes, timeline: Timeline) -> None:
    _by_process(axes, timeline, lambda sample: sample.resident_bytes / 2**20)
    axes.set_ylabel("resident, MiB")


def _heap(axes: Axes, timeline: Timeline) -> None:
    _by_process(axes, timeline, lambda sample: sample.heap_bytes / 2**20)
    axes.set_ylabel("JVM heap, MiB")


def _traffic(axes: Axes, timeline: Timeline) -> None:
    _by_process(axes, timeline, lambda sample: (sample.received_bytes_per_s + sample.sent_bytes_per_s) / 2**20)
    axes.set_ylabel("TCP, MiB/s")


def _by_process(axes: Axes, timeline: Timeline, value: Callable[[ProcessSample], float]) -> None:
    """A line for each name; processes of one name together. Those that come to nothing are left out, and so are all but
    the largest, where there are more than colours."""
    lines: dict[str, dict[float, float]] = {}
    for sample in timeline.processes:
        totals = lines.setdefault(sample.name, {})
        totals[sample.t_s] = totals.get(sample.t_s, 0.0) + value(sample)
    largest = sorted(lines, key=lambda name: -max(lines[name].values()))[: len(_OURS)]
    top = max((max(lines[name].values()) for name in largest), default=0.0)
    for rank, name in enumerate(sorted(name for name in largest if max(lines[name].values()) > top / 50)):
        axes.plot(*_with_gaps(lines[name]), color=_OURS[rank], linewidth=1.4, label=name)


def _with_gaps(line: dict[float, float]) -> tuple[list[float], list[float]]:
    """A line that stops where a process was not there, rather than leading from its end to the next one's beginning."""
    seconds: list[float] = []
    values: list[float] = []
    for second, value in line.items():
        if seconds and second - seconds[-1] > GAP_SECONDS:
            seconds.append(second)
            values.append(math.nan)
        seconds.append(second)
        values.append(value)
    return seconds, values


def _disk_operations(axes: Axes, timeline: Timeline) -> None:
    _lines(
        axes,
        timeline,
        {"reads": "disk_reads_per_s", "writes": "disk_writes_per_s", "flushes": "disk_flushes_per_s"},
        1,
    )
    axes.set_ylabel("disk, 1/s")


def _disk_bytes(axes: Axes, timeline: Timeline) -> None:
    _lines(axes, timeline, {"read": "disk_read_bytes_per_s", "written": "disk_written_bytes_per_s"}, 2**20)
    axes.set_ylabel("disk, MiB/s")


def _node_operations(axes: Axes, timeline: Timeline) -> None:
    _by_node(axes, timeline, lambda sample: sample.reads_per_s + sample.writes_per_s)
    axes.set_ylabel("nodes' disks, 1/s")


def _node_bytes(axes: Axes, timeline: Timeline) -> None:
    _by_node(axes, timeline, lambda sample: (sample.read_bytes_per_s + sample.written_bytes_per_s) / 2**20)
    axes.set_ylabel("nodes' disks, MiB/s")


def _by_node(axes: Axes, timeline: Timeline, value: Callable[[NodeSample], float]) -> None:
    for rank, node in enumerate(sorted({sample.node for sample in timeline.nodes})):
        line = {sample.t_s: value(sample) for sample in timeline.nodes if sample.node == node}
        style = _DASHES[rank // len(_OURS) % len(_DASHES)]
        axes.plot(
            *_with_gaps(line), color=_OURS[rank % len(_OURS)], linestyle=style, linewidth=1.4, label=f"node {node}"
        )


def _network(axes: Axes, timeline: Timeline) -> None:
    _lines(axes, timeline, {"loopback": "loopback_bytes_per_s", "network": "network_bytes_per_s"}, 2**20)
    axes.set_ylabel("network, MiB/s")


def _lines(axes: Axes, timeline: Timeline, columns: dict[str, str], unit: float) -> None:
    seconds = [sample.t_s for sample in timeline.host]
    for rank, (name, column) in enumerate(columns.items()):
        values = [getattr(sample, column) / unit for sample in timeline.host]
        axes.plot(seconds, values, color=_OURS[rank], linewidth=1.4, label=name)


def compact(value: float) -> str:
    """A number as an axis shows it: `0.5`, `64`, `1024`, `20K`, `1.5M`."""
    size = abs(value)
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e4, "K")):
        if size >= unit:
            return f"{value / (1e3 if name == 'K' else unit):.3g}{name}"
    return f"{value:.0f}" if size >= 100 else f"{value:.3g}"
