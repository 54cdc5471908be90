"""The answer to a requirement, as text and as data."""

import dataclasses
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.scaling import MOST_ERROR
from harness.sizing.fits import DRAWS, HeldOut
from harness.sizing.requirement import Requirement
from harness.sizing.solve import MORE_LOAD, Answer, Late, Sizing

FORMAT = 1


@dataclass(frozen=True)
class Trial:
    """What predictions of a campaign's held-out points came to."""

    source: str
    what: str
    points: int
    median: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether all were within what an answer may be off by."""
        return self.most <= MOST_ERROR

    @property
    def words(self) -> str:
        """The verdict: within the bar, or that nobody can say."""
        return f"within {MOST_ERROR:.0%}" if self.holds else f"cannot be said within {MOST_ERROR:.0%}"


def trials(held_out: Iterable[HeldOut]) -> list[Trial]:
    """By campaign and what was held out."""
    groups: dict[tuple[str, str], list[float]] = {}
    for of in held_out:
        groups.setdefault((of.source, of.what), []).append(of.error)
    return [Trial(*key, len(of), statistics.median(of), max(of)) for key, of in groups.items()]


def cheapest(sizing: Sizing) -> list[str]:
    """Of each level the cheapest row, and whether that is sure."""
    return [_cheapest(level, [of for of in sizing.answers if of.level == level]) for level in sizing.requirement.levels]


def _cheapest(level: str, answers: Sequence[Answer]) -> str:
    known = [of for of in answers if of.refused is None]
    if not known:
        return f"{level}: no answer, every row is refused"
    kept = [of for of in known if not any(it.is_over for it in of.late)]
    best = min(kept or known, key=lambda of: of.usd)
    over = "" if kept else "; no row keeps the 99th percentile"
    dropped = (
        "; dearer than one whose 99th percentile is over the limit" if best.usd > min(of.usd for of in known) else ""
    )
    rivals = [of for of in kept or known if of is not best and of.least_usd <= best.most_usd]
    said = f"{level}: the cheapest is {_name(best)}, {best.usd:,.0f} USD"
    if not rivals:
        return f"{said}: its band lies below all others{over}{dropped}"
    return (
        f"{said}, by the middle of its band: {_name(min(rivals, key=lambda of: of.usd))} may be cheaper{over}{dropped}"
    )


def _name(of: Answer) -> str:
    return f"{of.node}, {of.way.name}"


def text(sizing: Sizing) -> str:
    """The answer in words and columns."""
    answers = sizing.answers
    parts = [
        *([sizing.requirement.title] if sizing.requirement.title else []),
        asked_text(sizing.requirement),
        "",
        *_columns([_HEAD, *(_cells(number, of) for number, of in enumerate(answers, 1))]),
        "",
        *cheapest(sizing),
        *_refusals(answers),
        *_grouped("Guesses, by row:", ((of, it) for of in answers for it in of.guesses), answers),
        *_grouped("To be measured next, by row:", ((of, _narrow_text(of)) for of in answers if of.narrow), answers),
        *_grouped(
            "Rests on, by row:", ((of, f"{kind}: {it}") for of in answers for kind, it in of.evidence.items()), answers
        ),
        *_grouped("Notes, by row:", ((of, it) for of in answers for it in of.notes), answers),
        "",
        f"How far off predictions were of points held out ({len(sizing.held_out)} points):",
        *_columns(
            [("campaign", "what", "points", "median", "most", "so"), *map(_trial_cells, trials(sizing.held_out))], "  "
        ),
        "",
        LEGEND,
    ]
    return "\n".join(parts)


LEGEND = f"""\
nodes: the middle of {DRAWS:,} draws, and between which 80 % of them lie. p99: the worst kind, of clients that wait for
each answer, or * of requests that come at their own rate; of one node at level ONE; ! over the limit. binds: the
resource that takes the most nodes. more: further nodes for {MORE_LOAD - 1:.0%} more load, their price, and in how many
draws there are any. guess: the data do not carry that far, for the reasons named."""
_HEAD = ("", "node", "stored", "level", "nodes", "80 %", "USD", "80 %", "p99 ms", "binds", "more", "")


def _cells(number: int, of: Answer) -> tuple[str, ...]:
    start = (f"{number}", of.node, of.way.name, of.level)
    if of.refused is not None:
        return (*start, "-", "-", "-", "-", "-", "-", "-", "refused")
    return (
        *start,
        f"{of.nodes:,}",
        f"{of.least:,}-{of.most:,}",
        f"{of.usd:,.0f}",
        f"{of.least_usd:,.0f}-{of.most_usd:,.0f}",
        late_text(of.late),
        of.binds,
        f"+{of.more_nodes} {of.more_usd:,.0f} USD ({of.more_chance:.0%})",
        of.grade,
    )


def late_text(late: Sequence[Late]) -> str:
    """The latest kind's percentile; `*` where requests came at their own rate, `!` over its limit."""
    known = [of for of in late if of.worst_ms is not None]
    if not known:
        return "?"
    over = [of for of in known if of.is_over] or known
    worst = max(over, key=lambda of: of.worst_ms or 0.0)
    own = "*" if worst.open_ms is not None and worst.worst_ms == worst.open_ms else ""
    return f"{worst.worst_ms:.3g}{own}{'!' if worst.is_over else ''}"


def _trial_cells(of: Trial) -> tuple[str, ...]:
    return (of.source, of.what, f"{of.points}", f"{of.median:.0%}", f"{of.most:.0%}", of.words)


def _columns(rows: Sequence[tuple[str, ...]], indent: str = "") -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [indent + line.rstrip() for line in lines]


def _refusals(answers: Sequence[Answer]) -> list[str]:
    return _grouped("Refused, by row:", ((of, of.refused) for of in answers if of.refused is not None), answers)


def _grouped(title: str, said: Iterable[tuple[Answer, str]], answers: Sequence[Answer]) -> list[str]:
    """What is said of rows, each once, with the numbers of the rows."""
    rows: dict[str, list[int]] = {}
    for of, words in said:
        rows.setdefault(words, []).append(next(number for number, it in enumerate(answers, 1) if it is of))
    if not rows:
        return []
    return ["", title, *(f"  [{_ranges(numbers)}] {words}" for words, numbers in rows.items())]


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
    copies = f", {asked.replication} times" if asked.system == "cassandra" else ""
    lost = f"; nodes that may be lost: {asked.lost_nodes}" if asked.lost_nodes else ""
    return (
        f"{rates} per second; {rows:,.0f} rows of {asked.data.record_bytes:,} bytes ({size:,.0f} GB){copies}; "
        f"durability {asked.durability}{lost}; {asked.headroom:.0%} of each node stays unused"
    )


def data(sizing: Sizing) -> dict[str, Any]:
    """The answer as plain values."""
    return {
        "format": FORMAT,
        "requirement": sizing.requirement.model_dump(mode="json"),
        "answers": [_answer(of) for of in sizing.answers],
        "cheapest": cheapest(sizing),
        "held_out": [{**dataclasses.asdict(of), "error": of.error} for of in sizing.held_out],
        "trials": [{**dataclasses.asdict(of), "verdict": of.words} for of in trials(sizing.held_out)],
        "sources": list(sizing.sources),
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
        "evidence": dict(of.evidence),
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


def json_text(sizing: Sizing) -> str:
    """The answer for programs."""
    return json.dumps(data(sizing), indent=1)
