"""What an estimate rests on: how many operations of one kind a node does within a latency, how nodes add up, and what
a reader must know of the points that say so."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.disturbance import DISTURBED
from harness.errors import HarnessError
from harness.fields import Levels, levels_text
from harness.flatness import NOT_FLAT
from harness.results import Point, Results
from harness.scaling import LEAST_POINTS, MOST_ERROR, Errors, Law, errors, fit, held_out
from harness.statistics import SUFFICIENT_FRACTION, Summary

# The workloads that do one kind of operation alone.
KINDS = {"read": ("readonly", "workloadc"), "insert": ("writeonly", "sensor")}
# Marks of which the answer says that they are there, without their details.
GROUPED_MARKS = (NOT_FLAT, DISTURBED)


@dataclass(frozen=True)
class Measured:
    """A point of one kind of operation alone, on records that there are once."""

    nodes: float
    clients: float
    # Operations/s; None where the point failed or was not measured.
    per_s: Summary | None
    p99_us: Summary | None
    marks: tuple[str, ...]


@dataclass(frozen=True)
class Capacity:
    """What one node does of one kind of operation."""

    kind: str
    # Clients at which the 99th percentile is within the requirement, and the rate that the law gives for them.
    clients: float
    per_s: float
    law: Law
    errors: Errors
    evidence: str


@dataclass(frozen=True)
class Growth:
    """What several nodes do of one kind of operation, by one number of clients."""

    clients: float
    # Operations/s by nodes.
    per_s: Mapping[float, float]
    # Of the most nodes, predicted from all others; None where too few numbers of nodes were measured for that.
    errors: Errors | None
    # None where it was not tried at held-out nodes, or was off by too much.
    law: Law | None
    evidence: str

    def times(self, nodes: int) -> float:
        """What so many nodes do by what one does: as many times as much where no law of it is known."""
        return self.law.per_s(nodes) / self.law.per_s(1) if self.law else float(nodes)

    @property
    def linear_error(self) -> float:
        """How far N × one node is off at the most nodes, by what was measured."""
        most = max(self.per_s)
        return abs(most * self.per_s[1] / self.per_s[most] - 1)


def measured(results: Results, engine: str, kind: str) -> list[Measured]:
    """The points of one engine that do this kind alone, with each record once: workloads, or the gets of queue-depth,
    of which each in flight counts as a client. Of a campaign over stores an engine is a store, whose process is then a
    node. Raises HarnessError where two points differ in more than nodes and clients."""
    found: dict[tuple[float, float], Measured] = {}
    for point, levels in _of_engine(results, engine):
        if "depth" in levels:
            alone, rate, late = kind == "read", "gets_per_s", "p99_us"
        else:
            alone, rate, late = levels.get("workload") in KINDS[kind], "operations_per_s", f"{kind}_p99_us"
        if not alone:
            continue
        nodes, clients = float(levels.get("nodes", 1)), float(levels["threads"]) * float(levels.get("depth", 1))
        if (nodes, clients) in found:
            raise HarnessError(
                f"{kind}s of {clients:g} clients were measured in several ways, one of them "
                f"{levels_text(point.levels)}: an estimate needs a variant with one of them"
            )
        found[nodes, clients] = Measured(nodes, clients, point.summary(rate), point.summary(late), _marks(point, rate))
    return list(found.values())


def engines(results: Results) -> list[str]:
    """The engines that were measured under numbers of clients on one node, with each record once."""
    names = dict.fromkeys(str(point.levels.get("engine", point.store)) for point in results.points())
    return [
        name
        for name in names
        if any(point.rows and levels.get("nodes", 1) == 1 for point, levels in _of_engine(results, name))
    ]


def _of_engine(results: Results, engine: str) -> Iterator[tuple[Point, Levels]]:
    """The points of an engine that have a number of clients and each record once, with all that they were measured at:
    what is an axis of one experiment is a parameter of another."""
    for point in results.points():
        levels = {**results.variant.parameters, **point.levels}
        if (
            levels.get("engine", point.store) == engine
            and levels.get("replication", 1) == 1
            and "threads" in levels
            # What is offered at a rate of its own says nothing of how much is possible.
            and not levels.get("target_per_s")
        ):
            yield point, levels


def _marks(point: Point, rate: str) -> tuple[str, ...]:
    rows = [row for row in point.rows if rate in row.values]
    counts = Counter(mark for row in rows for mark in dict.fromkeys(map(_brief, row.marks)))
    return tuple(mark if count == len(rows) else f"{mark} at times" for mark, count in counts.items())


def _brief(mark: str) -> str:
    return next((begin.rstrip(": ") for begin in GROUPED_MARKS if mark.startswith(begin)), mark)


def evidence(known: Sequence[Measured], planned: int) -> str:
    """What a reader must know of points that were measured, of so many that should have been."""
    rates = [of.per_s for of in known if of.per_s is not None]
    times = [len(rate.values) for rate in rates]
    marks = Counter(mark for of in known for mark in of.marks)
    wide = sum(1 for rate in rates if len(rate.values) > 1 and not rate.sufficient)
    said = [
        f"{len(known)} points" if len(known) == planned else f"{len(known)} of {planned} points",
        _times(min(times), max(times)),
        *(f"{count} {mark}" for mark, count in marks.items()),
        *([f"{wide} with an interval over {SUFFICIENT_FRACTION:.0%}"] if wide else []),
    ]
    return ", ".join(said)


def _times(least: int, most: int) -> str:
    if least < most:
        return f"measured {least} to {most} times"
    return "each measured once" if most == 1 else f"each measured {most} times"


def capacity(points: Sequence[Measured], kind: str, p99_ms: float) -> Capacity:
    """What a node does of a kind within a latency; raises HarnessError where it was not measured, or not well."""
    alone = [of for of in points if of.nodes == 1]
    known = [of for of in alone if of.per_s is not None and of.p99_us is not None]
    per_s = {of.clients: of.per_s.median for of in known if of.per_s is not None}
    p99 = {of.clients: of.p99_us.median for of in known if of.p99_us is not None}
    if len(per_s) < LEAST_POINTS:
        raise HarnessError(
            f"{kind}s were measured at {len(per_s)} counts of clients: {LEAST_POINTS} at least show a curve"
        )
    found = errors(held_out(per_s))
    if found.law > MOST_ERROR:
        raise HarnessError(
            f"the data do not support an estimate of {kind}s: at points left out the law is off by {found.law:.0%} "
            f"({evidence(known, len(alone))})"
        )
    within = [clients for clients, of in p99.items() if of <= 1000 * p99_ms]
    if not within:
        raise HarnessError(
            f"no number of clients had {kind}s within {p99_ms:g} ms at the 99th percentile: the least was "
            f"{min(p99.values()) / 1000:.3g} ms"
        )
    law = fit(per_s)
    clients = max(within, key=law.per_s)
    return Capacity(kind, clients, law.per_s(clients), law, found, evidence(known, len(alone)))


def growth(points: Sequence[Measured]) -> Growth | None:
    """How nodes add up under one number of clients: that which the most numbers of nodes were measured with, and of
    several the largest, since fewer clients leave nodes idle. None where nothing was measured on one node and more."""
    by_clients: dict[float, list[Measured]] = {}
    for of in points:
        by_clients.setdefault(of.clients, []).append(of)
    known = {clients: [of for of in members if of.per_s is not None] for clients, members in by_clients.items()}
    several = [clients for clients, members in known.items() if len(members) > 1 and 1 in {of.nodes for of in members}]
    if not several:
        return None
    clients = max(several, key=lambda of: (len(known[of]), of))
    per_s = {of.nodes: of.per_s.median for of in known[clients] if of.per_s is not None}
    off = errors(held_out(per_s)[-1:]) if len(per_s) >= LEAST_POINTS else None
    law = fit(per_s) if off is not None and off.law <= MOST_ERROR else None
    return Growth(clients, per_s, off, law, evidence(known[clients], len(by_clients[clients])))
