"""The answer to a requirement, section by section, in words that all its forms share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.sizing.curves import Curve
from harness.sizing.findings import Trial, cheapest, coverage, late_text, trials
from harness.sizing.fits import DRAWS
from harness.sizing.requirement import Requirement
from harness.sizing.solve import Answer, Sizing


@dataclass(frozen=True)
class Section:
    """A part of the answer: rows of a table, the first of which is its head, and lines."""

    # Empty of what belongs to the answer itself.
    title: str
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    is_title: bool = False


def sections(sizing: Sizing) -> list[Section]:
    """The answer, what it comes to first."""
    answers, asked, off = sizing.answers, sizing.requirement, trials(sizing.held_out)
    measured = [_measured(of) for of in _used(answers)]
    found = [
        *([Section("", lines=(asked.title,), is_title=True)] if asked.title else []),
        Section("", lines=(asked_text(asked),)),
        Section("", lines=tuple(cheapest(sizing))),
        Section("", rows=(_HEAD, *(_cells(number, of) for number, of in enumerate(answers, 1)))),
        _grouped("Refused, by row", ((of, of.refused) for of in answers if of.refused is not None), answers),
        _grouped("Guesses, by row", ((of, it) for of in answers for it in of.guesses), answers),
        _grouped("To be measured next, by row", ((of, _narrow_text(of)) for of in answers if of.narrow), answers),
        _grouped("Rests on, by row", ((of, _names(*it)) for of in answers for it in of.curves.items()), answers),
        Section(
            "What that was measured on, one node without replicas each", rows=(_MEASURED, *measured) if measured else ()
        ),
        _grouped("Notes, by row", ((of, it) for of in answers for it in of.notes), answers),
        Section(
            f"How far off predictions were of {len(sizing.held_out)} points held out",
            rows=(_TRIED, *map(_trial_cells, off)) if off else (),
            lines=(*coverage(sizing.held_out), *_untried(sizing)),
        ),
        Section("How to read this", lines=LEGEND),
    ]
    return [of for of in found if of.rows or of.lines]


def _untried(sizing: Sizing) -> list[str]:
    return [f"nothing else measured what these did: {', '.join(sizing.untried)}"] if sizing.untried else []


LEGEND = (
    f"nodes, USD: at the middle of {DRAWS:,} draws, and between which numbers 80 % of them lie",
    "p99: the worst kind, of clients that wait for each answer, or * of requests that come at their own rate; of one "
    "node at level ONE; ! over the limit",
    "binds: the resource that takes the most nodes",
    "with 10 % more load: further nodes and their price at the middle, and in how many draws there are any",
    "so: measured, or guess where the data do not carry that far, or refused, for the reasons named",
)
_TRIED = ("campaign", "what", "points", "median", "most", "so")
_HEAD = ("", "node", "stored", "level", "nodes (80 %)", "USD (80 %)", "p99 ms", "binds", "with 10 % more load", "so")


def _cells(number: int, of: Answer) -> tuple[str, ...]:
    start = (f"{number}", of.node, of.way.name, of.level)
    if of.refused is not None:
        return (*start, "-", "-", "-", "-", "-", of.grade)
    more = f"{of.more_nodes} more, {of.more_usd:,.0f} USD" if of.more_nodes else "no more"
    return (
        *start,
        f"{of.nodes:,} ({of.least:,}-{of.most:,})",
        f"{of.usd:,.0f} ({of.least_usd:,.0f}-{of.most_usd:,.0f})",
        late_text(of.late),
        of.binds,
        f"{more} ({of.more_chance:.0%})",
        of.grade,
    )


_MEASURED = (
    "campaign",
    "of",
    "stored",
    "per second",
    "clients",
    "cores",
    "records",
    "bytes",
    "memory",
    "durability",
    "",
)


def _measured(of: Curve) -> tuple[str, ...]:
    """One campaign's rates of a kind: at the best number of clients, with what a reader must know."""
    said = [
        *(["measured once"] if of.repeated is None else []),
        *([f"{of.marks} of {len(of.points)} points marked"] if of.marks else []),
        *(["beside other kinds"] if of.mixed else []),
        *([f"scans of {of.scan_rows:g} rows"] if of.kind == "scans" else []),
        *([of.setting] if of.setting else []),
    ]
    return (
        of.source,
        of.kind,
        of.way.name,
        f"{max(it.per_s for it in of.points):,.0f}",
        f"{of.points[0].clients:g} to {of.most_clients:g}" if len(of.points) > 1 else f"{of.most_clients:g}",
        f"{of.cores}",
        f"{of.rows:,.0f}",
        f"{of.record_bytes:,.0f}",
        f"{of.memory_part:,.0f} times" if of.memory_part >= 1 else f"{of.memory_part:.0%} of data",
        of.durability,
        ", ".join(said),
    )


def _used(answers: Sequence[Answer]) -> list[Curve]:
    return list(dict.fromkeys(curve for of in answers for curves in of.curves.values() for curve in curves))


def _names(kind: str, curves: Sequence[Curve]) -> str:
    return f"{kind}: {', '.join(dict.fromkeys(of.source for of in curves))}"


def _trial_cells(of: Trial) -> tuple[str, ...]:
    return (of.source, of.what, f"{of.points}", f"{of.median:.0%}", f"{of.most:.0%}", of.words)


def _grouped(title: str, said: Iterable[tuple[Answer, str]], answers: Sequence[Answer]) -> Section:
    """What is said of rows, each once, with the numbers of the rows."""
    rows: dict[str, list[int]] = {}
    for of, words in said:
        rows.setdefault(words, []).append(next(number for number, it in enumerate(answers, 1) if it is of))
    return Section(title, lines=tuple(f"[{_ranges(numbers)}] {words}" for words, numbers in rows.items()))


def _ranges(numbers: Sequence[int]) -> str:
    """`1-3 5` of 1, 2, 3 and 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return " ".join(f"{of[0]}" if len(of) == 1 else f"{of[0]}-{of[-1]}" for of in runs)


def _narrow_text(of: Answer) -> str:
    return f"{of.narrow} (takes away {of.narrowed:.0%} of the band)"


def asked_text(asked: Requirement) -> str:
    """What was asked for, in one line."""
    rates = ", ".join(f"{rate:,.0f} {kind}" for kind, rate in asked.operations.rates().items())
    rows, size = asked.data.rows_then, asked.data.rows_then * asked.data.record_bytes / 1e9
    copies = f", {asked.replication} times" if asked.replication > 1 else ""
    lost = f"; nodes that may be lost: {asked.lost_nodes}" if asked.lost_nodes else ""
    return (
        f"{rates} per second; {rows:,.0f} rows of {asked.data.record_bytes:,} bytes ({size:,.0f} GB){copies}; "
        f"durability {asked.durability}{lost}; {asked.headroom:.0%} of each node stays unused"
    )
