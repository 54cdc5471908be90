"""Tables of documents, between `<!-- table NAME ... -->` and `<!-- end -->`, each from what is published."""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType

from harness.benches import CEILING, Spread
from harness.documents.marks import Sources
from harness.errors import HarnessError
from harness.plan import Campaign, Variant
from harness.report.answers.registry import answer_of
from harness.report.names import level_name, levels_name, store_name
from harness.report.verdict import verdict_of
from harness.results import Point, Results, grouped
from harness.scaling import LEAST_POINTS, errors, held_out, verdict

# Parameters that say how much is measured, and not of what.
SIZES = ("seconds", "warm_up_seconds", "stage_seconds", "records", "pairs", "heap_mib")
BLOCK = re.compile(r"(<!-- table (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def rewritten(text: str, sources: Sources, folder: Path) -> str:
    """The text of a document in a folder, with every table as it is published."""
    return BLOCK.sub(lambda found: f"{found[1]}{table(found[2], sources, folder)}\n{found[4]}", text)


def table(words: str, sources: Sources, folder: Path) -> str:
    """The table that a mark asks for, links as from a folder; raises HarnessError where there is none of that name."""
    name, *arguments = words.split()
    if name not in _TABLES:
        raise HarnessError(f"there is no table {name!r}: choose from {', '.join(_TABLES)}")
    text = _TABLES[name](arguments, sources)
    return re.sub(r"\]\(/([^)]*)\)", lambda found: f"]({os.path.relpath(sources.checkout / found[1], folder)})", text)


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown; all but the first column to the right where they are numbers."""
    aligned = ["---"] + ["---:" if all(row[of][:1].isdigit() for row in rows) else "---" for of in range(1, len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, aligned, *rows))


def _campaigns(_: Sequence[str], sources: Sources) -> str:
    names = sorted(path.stem for path in (sources.checkout / "campaigns").glob("*.toml"))
    rows = []
    for name in names:
        campaign = sources.campaign_of(name)
        rows.append((f"`{name}`", campaign.question, campaign.source))
    return _lines(("campaign", "question", "after"), rows)


def _nights(_: Sequence[str], sources: Sources) -> str:
    """Every night, how long it takes, and what a slice has that its campaign's own night has not."""
    rows = []
    for path in sorted((sources.checkout / "campaigns").glob("*.toml")):
        campaign = sources.campaign_of(path.stem)
        for variant in campaign.variants.values():
            if variant.size == "night":
                minutes = f"{campaign.expected_seconds(variant) / 60:.0f} min"
                rows.append((f"`{_command(campaign, variant)}`", minutes, _otherwise(campaign, variant)))
    return _lines(("night", "takes", "its own"), rows)


def _otherwise(campaign: Campaign, variant: Variant) -> str:
    """The levels of a slice that are not those of its campaign's night, and the parameters that are others."""
    night = campaign.variants["night"]
    stores = [] if variant.stores == night.stores else [", ".join(map(store_name, variant.stores))]
    levels = [
        f"{axis} {', '.join(map(str, of))}" for axis, of in variant.axes.items() if tuple(of) != tuple(night.axes[axis])
    ]
    others = [
        f"{name} {of}" for name, of in variant.parameters.items() if of != night.parameters[name] and name not in SIZES
    ]
    return "; ".join([*stores, *levels, *others])


def _answers(names: Sequence[str], sources: Sources) -> str:
    """Of each campaign, or of those that are named, what the document says, what was found, and with what."""
    rows = []
    for name in names or sorted(sources.published):
        published = sources.published.get(name)
        if published is None:
            raise HarnessError(f"nothing is published of {name!r}: there is {', '.join(sorted(sources.published))}")
        rows.append(_answer_row(name, published.results))
    return _lines(("campaign", "the document", "here", "quotable", "measured"), rows)


def _answer_row(name: str, results: Results) -> tuple[str, ...]:
    answer = answer_of(results)
    origin, here = results.origin, results.origin.identity
    finding = answer.finding
    said = f"{finding.says}: **{finding.agreement.value}**" if finding else ""
    command = _command(results.campaign, results.variant)
    with_what = f"`{command}`, {origin.commit[:7]}, {here.cpu}, {here.cores} cores, {origin.began_utc[:10]}"
    cells = (f"[{name}]({_place(name, results)})", said, answer.sentence, verdict_of(results)[0], with_what)
    return tuple(cell.replace("|", "\\|") for cell in cells)


def _command(campaign: Campaign, variant: Variant) -> str:
    words = [f"make campaign NAME={campaign.name}", *([f"SLICE={variant.slice}"] if variant.slice else [])]
    return " ".join([*words, *(["QUICK=1"] if variant.size == "quick" else [])])


def _place(name: str, results: Results) -> str:
    folder = name.removesuffix(f"/{results.variant.slice}")
    return f"/results/{folder}/{results.variant.name}/summary.json"


def _laws(_: Sequence[str], sources: Sources) -> str:
    """How far a law is off at each count of clients or nodes that it was not fitted to, of every published curve."""
    rows = []
    for name, published in sorted(sources.published.items()):
        for curve, per_s in _curves(published.results).items():
            off = errors(held_out(per_s))
            cells = (off.law, off.law_most, off.carried, off.linear)
            judged = verdict(off).words.partition(":")[0]
            rows.append(
                (f"{name}{f', {curve}' if curve else ''}", str(len(per_s)), *(f"{of:.0%}" for of in cells), judged)
            )
    head = ("curve", "points", "law, median", "at most", "carried forward", "linear", "verdict")
    return _lines(head, rows)


def _curves(results: Results) -> dict[str, dict[float, float]]:
    """Rates by clients, gets in flight or nodes, of every curve that has enough points."""
    axis = next(
        (of for of in ("threads", "depth", "nodes") if len(results.variant.axes.get(of, ())) >= LEAST_POINTS), None
    )
    if axis is None:
        return {}
    metric = next(of.name for of in results.campaign.experiment.metrics if of.main)
    others = [of for of, levels in results.variant.axes.items() if len(levels) > 1 and of != axis]
    curves = {}
    for name, points in grouped(results.points(), lambda point: levels_name(point.levels, others)).items():
        per_s = {float(point.levels[axis]): of.median for point in points if (of := point.summary(metric))}
        if len(per_s) >= LEAST_POINTS:
            curves[name] = per_s
    return curves


def _rates(arguments: Sequence[str], sources: Sources) -> str:
    """A row for each workload of a bench's file, a column for each line, then ours by the best of the others."""
    name, *wanted = arguments
    bench, about = sources.bench(name), sources.benches.about(name)
    workloads = wanted or bench.workloads()
    lines = sorted({line for of in workloads for line in bench.lines(of)}, key=_rank)
    rows = []
    for workload in workloads:
        rates = [_rate(bench.of(workload, line, "per_second")) for line in lines]
        quotients = [_quotient(bench.by_best(workload, metric)) for metric in ("per_second", "cpu_us", "p99_us")]
        rows.append((sources.benches.workload(workload).title, *rates, *quotients, about.measured(workload)))
    named = [f"`{line}`" if line != "aiodb" else line for line in lines]
    head = ("per second", *named, "aiodb to the best", "processor", "p99", "measured")
    return _lines(head, rows)


def _one(arguments: Sequence[str], sources: Sources) -> str:
    """A row for each line of one workload of a bench's file."""
    name, workload = arguments
    bench, about = sources.bench(name), sources.benches.about(name)
    rows = []
    for line in sorted(bench.lines(workload), key=_rank):
        of = {metric: bench.of(workload, line, metric) for metric in ("per_second", "p99_us", "cpu_us", "read_bytes")}
        rows.append(
            (
                f"`{line}`" if line != "aiodb" else line,
                _rate(of["per_second"]),
                f"{of['p99_us'].median / 1000:.1f} ms",
                f"{of['cpu_us'].median:.0f} µs",
                f"{of['read_bytes'].median:,.0f} bytes",
                about.measured(workload),
            )
        )
    head = (
        sources.benches.workload(workload).title,
        "per second",
        "p99",
        "processor",
        "read from the disk for each",
        "measured",
    )
    return _lines(head, rows)


def _served(_: Sequence[str], sources: Sources) -> str:
    """A row for each workload of the campaign `serve`, beside redis-server or the device."""
    if "serve" not in sources.published:
        raise HarnessError(f"nothing is published of 'serve': there is {', '.join(sorted(sources.published))}")
    rows = [_served_row(point) for point in sources.published["serve"].results.points()]
    head = ("", "aiodb serve", "redis-server, or the device", "ratio", "p99 of both, ms", "processor of both, µs")
    return _lines(head, rows)


def _served_row(point: Point) -> tuple[str, ...]:
    def written(metric: str, write: Callable[[Spread], str]) -> str:
        of = point.summary(metric)
        return write(Spread(of.median, of.low, of.high)) if of else ""

    def both(metric: str, divisor: float) -> str:
        values = [written(name, lambda of: f"{of.median / divisor:.1f}") for name in (metric, f"other_{metric}")]
        return ", ".join(filter(None, values))

    return (
        level_name("workload", point.levels["workload"]),
        written("requests_per_s", _rate),
        written("other_per_s", _rate),
        written("ratio", _quotient),
        both("p99_us", 1000.0),
        both("cpu_us", 1.0),
    )


def _nodes(arguments: Sequence[str], sources: Sources) -> str:
    (name,) = arguments
    bench, about = sources.bench(name), sources.benches.about(name)
    measured = about.measured("join")
    join = [bench.of("join", line, "megabytes_per_s") for line in ("aiodb", "default")]
    repair = [bench.of("repair", line, "seconds") for line in ("aiodb", "default")]
    faster = bench.by_line("join", "megabytes_per_s", "default")
    quicker = bench.by_line("repair", "seconds", "default")
    inverse = Spread(1 / quicker.median, 1 / quicker.high, 1 / quicker.low)
    costs = [bench.of("join", line, "processor_s_per_gb").median for line in ("aiodb", "default")]
    rows = [
        (
            sources.benches.workload("join").title,
            *(f"{of.median:.0f} MB/s ({of.low:.0f}-{of.high:.0f})" for of in join),
            _quotient(faster),
            f"{costs[0]:.0f} s to {costs[1]:.0f} s for each GB",
            measured,
        ),
        (
            sources.benches.workload("repair").title,
            *(f"{of.median:.1f} s ({of.low:.1f}-{of.high:.1f})" for of in repair),
            _quotient(inverse),
            "",
            measured,
        ),
    ]
    return _lines(("", "aiodb", "`default`", "aiodb to `default`", "processor", "measured"), rows)


def _benches(_: Sequence[str], sources: Sources) -> str:
    rows = [
        (f"[{name}](/docs/{name})", of.what, of.commit, of.date, sources.benches.machine, f"`{of.command}`")
        for name, of in sources.benches.files.items()
    ]
    return _lines(("file", "what", "commit", "date", "machine", "command"), rows)


def _rank(line: str) -> tuple[bool, bool, str]:
    return line != CEILING, line != "aiodb", line


def _rate(of: Spread) -> str:
    return f"{_hundreds(of.median)} ({_hundreds(of.low)}-{_hundreds(of.high)})"


def _hundreds(value: float) -> str:
    return f"{round(value / 100) * 100:,.0f}" if value >= 1000 else f"{value:.0f}"


def _quotient(of: Spread) -> str:
    return f"{of.median:.2f} ({of.low:.2f} to {of.high:.2f})"


_TABLES: MappingProxyType[str, Callable[[Sequence[str], Sources], str]] = MappingProxyType(
    {
        "campaigns": _campaigns,
        "nights": _nights,
        "answers": _answers,
        "laws": _laws,
        "rates": _rates,
        "lines": _one,
        "nodes": _nodes,
        "served": _served,
        "benches": _benches,
    }
)
