"""From demands to nodes: the fewest that carry the load, hold the data and survive a loss, with a band, what binds,
what more load costs, and which measurement would narrow it most."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from harness.experiments.levels import replicas
from harness.sizing.fits import Draws, Growth, HeldOut, band, narrowest, normal
from harness.sizing.model import UNKNOWN_GROWTH, WRITES, Model
from harness.sizing.node import (
    Demand,
    Rate,
    Refused,
    Unsure,
    copies_of,
    disk_demands,
    mixing_factor,
    network_demand,
    rate_of,
    room_demands,
)
from harness.sizing.requirement import Node, Operations, Requirement
from harness.sizing.ways import WAYS, Way

# More nodes than these data say anything of.
MOST_NODES = 10_000
MORE_LOAD = 1.1

# A node that does so much of what another does is as busy.
AS_BUSY = 0.9

REPLICAS = "replicas"


@dataclass(frozen=True)
class Late:
    """The 99th percentile of a kind at the load of one node."""

    kind: str
    # Of clients that wait for each answer; None where it was not measured.
    closed_ms: float | None
    # Of requests that come at a rate of their own, and that rate on one node; None where nobody asked so.
    open_ms: float | None
    open_per_s: float | None
    limit_ms: float | None
    # The part that a node does of the most that it can, and the part at which requests came at their own rate.
    used: float
    open_used: float | None

    @property
    def is_as_busy(self) -> bool:
        """Whether nodes are about as busy as where requests came at their own rate."""
        return self.open_used is not None and self.used >= AS_BUSY * self.open_used

    @property
    def worst_ms(self) -> float | None:
        """The larger one of those that say something of nodes so busy."""
        known = (self.closed_ms, self.open_ms if self.is_as_busy else None)
        return max((of for of in known if of is not None), default=None)

    @property
    def is_over(self) -> bool:
        """Whether the limit may not be kept."""
        return self.limit_ms is not None and self.worst_ms is not None and self.worst_ms > self.limit_ms


@dataclass(frozen=True)
class Answer:
    """What a requirement takes on one kind of node, in one way, at one level."""

    node: str
    way: Way
    level: str
    # The rest has no meaning where this is not None.
    refused: str | None
    nodes: int = 0
    least: int = 0
    most: int = 0
    usd: float = 0.0
    least_usd: float = 0.0
    most_usd: float = 0.0
    binds: str = ""
    # Nodes by resource, not rounded, at the middle of what is known, without those to be lost.
    by_resource: Mapping[str, float] = field(default_factory=dict)
    late: tuple[Late, ...] = ()
    more_nodes: int = 0
    more_usd: float = 0.0
    # The part of all draws in which so much more load takes further nodes.
    more_chance: float = 0.0
    guesses: tuple[str, ...] = ()
    # What would be measured, and the part of the band's width that this would take away.
    narrow: str = ""
    narrowed: float = 0.0
    # What the rate of each kind rests on, and the campaigns of all of them.
    evidence: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def grade(self) -> str:
        """How far the number carries."""
        if self.refused is not None:
            return "refused"
        return "guess" if self.guesses else "measured"


@dataclass(frozen=True)
class Sizing:
    """The whole answer."""

    requirement: Requirement
    answers: tuple[Answer, ...]
    held_out: tuple[HeldOut, ...]
    sources: tuple[str, ...]


def size(model: Model, asked: Requirement) -> Sizing:
    """An answer for each kind of node, way and level."""
    answers = tuple(
        answer(model, asked, name, way, level)
        for name in asked.node
        for way in WAYS
        if way.system == asked.system
        for level in asked.levels
    )
    used = {source for of in answers for source in of.sources}
    shared = {of.source for of in model.held_out if _concerns_all(of)}
    held_out = tuple(of for of in model.held_out if of.source in used | shared)
    return Sizing(asked, answers, held_out, tuple(sorted(used | shared)))


def _concerns_all(of: HeldOut) -> bool:
    return any(word in of.what for word in ("several nodes", "replicas", "mixed"))


@dataclass(frozen=True)
class _Plan:
    """Demands at the middle of what is known, and everything that they may be off by."""

    demands: tuple[Demand, ...]
    rates: Mapping[str, Rate]
    mixing: Unsure | None
    notes: tuple[str, ...]


def answer(model: Model, asked: Requirement, name: str, way: Way, level: str) -> Answer:
    """One row of the table."""
    node = asked.node[name]
    if refused := _too_few_replicas(asked, level):
        return Answer(name, way, level, refused)
    plan = _plan(model, asked, node, way, level)
    if isinstance(plan, Refused):
        return Answer(name, way, level, plan.reason)
    nodes = _nodes(model, asked, plan, level)
    if not np.all(np.isfinite(nodes)) or band(nodes)[1] > MOST_NODES:
        reason = "no number of such nodes is enough: memory is used up by Cassandra itself"
        return Answer(
            name, way, level, reason if not np.all(np.isfinite(nodes)) else f"it takes more than {MOST_NODES:,} nodes"
        )
    low, middle, high = band(nodes)
    usd = asked.node_usd(name)
    by_resource = _by_resource(model, asked, plan, level)
    more = _plan(model, _with_more_load(asked), node, way, level)
    assert not isinstance(more, Refused), "what carries a load is refused no more for a little more of it"
    more_nodes = _nodes(model, asked, more, level)
    _, more_middle, _ = band(more_nodes)
    narrow = _narrow(model, asked, plan, level)
    used = _used(model, asked, plan, level, middle)
    late = tuple(_late(model, plan, way, kind, asked, used) for kind in plan.rates)
    return Answer(
        node=name,
        way=way,
        level=level,
        refused=None,
        nodes=int(middle),
        least=int(low),
        most=int(high),
        usd=middle * usd,
        least_usd=low * usd,
        most_usd=high * usd,
        binds=_binds(by_resource, asked),
        by_resource=by_resource,
        late=late,
        more_nodes=int(more_middle - middle),
        more_usd=(more_middle - middle) * usd,
        more_chance=float(np.mean(more_nodes > nodes)),
        guesses=_guesses(model, asked, plan, level, int(high), late),
        narrow=narrow[0] if narrow else "",
        narrowed=narrow[1] if narrow else 0.0,
        evidence={kind: of.evidence for kind, of in plan.rates.items()},
        sources=tuple(dict.fromkeys(curve.source for of in plan.rates.values() for curve in of.curves)),
        notes=plan.notes,
    )


def _too_few_replicas(asked: Requirement, level: str) -> str | None:
    needed, left = replicas(level, asked.replication), max(0, asked.replication - asked.lost_nodes)
    if asked.system == "embedded" and asked.lost_nodes:
        return "processes without replicas lose their part of the data with a node: lost_nodes = 0, or cassandra"
    if not asked.lost_nodes or needed <= left:
        return None
    return (
        f"{level} needs {needed} of {asked.replication} replicas, and {left} are left once {asked.lost_nodes} are lost"
    )


def _plan(model: Model, asked: Requirement, node: Node, way: Way, level: str) -> _Plan | Refused:
    wanted = asked.operations.rates()
    rates: dict[str, Rate] = {}
    for kind in wanted:
        found = rate_of(model, way, kind, asked, node)
        if isinstance(found, Refused):
            return found
        rates[kind] = found
    disk = disk_demands(model, way, level, asked, node)
    if isinstance(disk, Refused):
        return disk
    times, mixing = mixing_factor(model, rates, asked)
    waits = {kind: model.level_wait(level, asked.replication) if kind in WRITES else 1.0 for kind in wanted}
    parts = {kind: rate / rates[kind].per_s * waits[kind] * times for kind, rate in wanted.items()}
    processor = Demand("processor", parts, {kind: of.unsure for kind, of in rates.items()})
    network = network_demand(way, level, asked, node)
    demands = (processor, *disk, *([network] if network else []), *room_demands(way, asked, node))
    return _Plan(demands, rates, mixing, tuple(of.note for of in demands if of.note))


def _with_more_load(asked: Requirement) -> Requirement:
    operations = asked.operations
    more = {kind: rate * MORE_LOAD for kind, rate in operations.rates().items()}
    return asked.model_copy(update={"operations": Operations(**{**operations.model_dump(), **more})})


def _nodes(model: Model, asked: Requirement, plan: _Plan, level: str, without: str | None = None) -> Draws:
    """Nodes of each draw, whole ones."""
    alive = np.ceil(_alive(model, asked, plan, level, without) - 1e-9)
    found: Draws = np.maximum(asked.replication, alive + asked.lost_nodes)
    return found


def _alive(model: Model, asked: Requirement, plan: _Plan, level: str, without: str | None) -> Draws:
    """Nodes of each draw that must work, not rounded."""

    def off(name: str) -> Draws:
        draws = normal(name)
        return np.zeros_like(draws) if name == without else draws

    used = 1 - asked.headroom
    most = np.zeros_like(normal("nodes"))
    for demand in plan.demands:
        times = np.zeros_like(most)
        for kind, part in demand.parts.items():
            logs = sum((of.spread * off(of.name) for of in demand.unsure.get(kind, ())), np.zeros_like(most))
            if demand.resource == "processor":
                logs = logs + (plan.mixing.spread * off(plan.mixing.name) if plan.mixing else 0.0)
                logs = logs + np.log(
                    model.fanout.times(copies_of(kind, level, asked.replication), off("replicas that answer"))
                )
            times = times + part / used * np.exp(logs)
        if demand.grows:
            nodes = _growth(model, asked).nodes(times, off("nodes that add up"), off("more nodes than were measured"))
        else:
            # A node holds no row twice: where one has room for all of it, any number does.
            nodes = np.where(times <= asked.replication, np.minimum(times, 1.0), times)
        most = np.maximum(most, nodes)
    return most


def _growth(model: Model, asked: Requirement) -> Growth:
    """How nodes add up; of processes with parts of the data nobody measured that."""
    return model.growth if asked.system == "cassandra" else UNKNOWN_GROWTH


def _by_resource(model: Model, asked: Requirement, plan: _Plan, level: str) -> dict[str, float]:
    """Of each resource alone, at the middle."""
    found = {}
    for demand in plan.demands:
        single = replace(plan, demands=(demand,))
        found[demand.resource] = float(np.quantile(_alive(model, asked, single, level, None), 0.5))
    return found


def _binds(by_resource: Mapping[str, float], asked: Requirement) -> str:
    resource = max(by_resource, key=lambda of: by_resource[of])
    return (
        REPLICAS
        if math.ceil(by_resource[resource]) + asked.lost_nodes <= asked.replication and asked.replication > 1
        else resource
    )


def _names(model: Model, asked: Requirement, plan: _Plan) -> dict[str, str]:
    """Everything that is unsure by name, with the measurement that would tell."""
    found = {of.name: of.measure for demand in plan.demands for members in demand.unsure.values() for of in members}
    if plan.mixing:
        found[plan.mixing.name] = plan.mixing.measure
    if asked.system == "cassandra":
        found["nodes that add up"] = "nodes that join under load: make campaign NAME=grow, repeated"
        found["more nodes than were measured"] = (
            f"more than {model.growth.most_nodes} nodes: make campaign NAME=grow with more"
        )
        if asked.replication > 1:
            found["replicas that answer"] = (
                f"levels at replication {asked.replication}, beside 1: make campaign NAME=consistency"
            )
    return found


def _narrow(model: Model, asked: Requirement, plan: _Plan, level: str) -> tuple[str, float] | None:
    names = _names(model, asked, plan)

    def width(without: str | None) -> float:
        low, _, high = np.quantile(
            np.log(np.maximum(_alive(model, asked, plan, level, without), 1e-9)), [0.1, 0.5, 0.9]
        )
        return float(high - low)

    best = narrowest(width, list(names))
    return (names[best[0]], best[1]) if best else None


def _guesses(
    model: Model, asked: Requirement, plan: _Plan, level: str, most: int, late: Sequence[Late]
) -> tuple[str, ...]:
    """Why the answer is none that was measured."""
    found = [of.guess for demand in plan.demands for members in demand.unsure.values() for of in members]
    if plan.mixing:
        found.append(plan.mixing.guess)
    if asked.system == "cassandra":
        if most > 1 and not model.growth_known:
            found.append("no campaign measured several nodes")
        elif most > model.growth.most_nodes:
            found.append(f"{model.growth.most_nodes} nodes were measured at most")
        if asked.replication > 1 and not model.fanout_known:
            found.append("no campaign measured replicas")
        elif asked.replication not in (1, *(of.replication for of in model.observations)):
            found.append(f"replication {asked.replication} was not measured")
        elif asked.replication > 1:
            found.append("what replicas cost was measured with all nodes on one processor")
    else:
        found += ["that processes with parts of the data add up was not measured"] if most > 1 else []
    found += [words for of in late if (words := _late_guess(of))]
    return tuple(dict.fromkeys(of for of in found if of))


def _late_guess(of: Late) -> str:
    """Why a limit of the 99th percentile may not be kept; empty where nothing says so."""
    if of.limit_ms is None or of.open_ms is None or of.open_used is None or of.open_ms <= of.limit_ms:
        return f"{of.kind} may be later than {of.limit_ms:g} ms" if of.is_over and of.limit_ms is not None else ""
    there = (
        f"{of.kind} that came at their own rate, {of.open_used:.0%} of what a node does, had {of.open_ms:,.0f} ms at "
        f"the 99th percentile, more than {of.limit_ms:g}"
    )
    return there if of.is_as_busy else f"{there}; nodes as busy as here were measured with waiting clients alone"


def _late(model: Model, plan: _Plan, way: Way, kind: str, asked: Requirement, used: float) -> Late:
    rate = plan.rates[kind]
    closed = [
        late
        for curve in rate.curves
        if (best := curve.within(asked.p99_us(kind))) and (late := curve.p99_us(best[0].per_s * used)) is not None
    ]
    offered = [of for of in model.open_loop(way, kind) if kind in of.p99_us]
    worst = max(offered, key=lambda of: of.p99_us[kind]) if offered else None
    return Late(
        kind,
        statistics.median_high(closed) / 1000 if closed else None,
        worst.p99_us[kind] / 1000 if worst else None,
        worst.per_s if worst else None,
        getattr(asked.p99_ms, kind),
        used,
        worst.per_s / rate.measured_per_s if worst else None,
    )


def _used(model: Model, asked: Requirement, plan: _Plan, level: str, nodes: float) -> float:
    """The part of its processor that a node uses once as many are lost as may be, by the middle of what is known."""
    processor = plan.demands[0]
    copies = {
        kind: model.fanout.times(copies_of(kind, level, asked.replication), np.zeros(1))[0] for kind in plan.rates
    }
    taken = sum(part * float(copies[kind]) for kind, part in processor.parts.items())
    return min(1 - asked.headroom, taken / _growth(model, asked).times(max(1.0, nodes - asked.lost_nodes)))
