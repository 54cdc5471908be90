"""From demands to nodes: the fewest that carry the load, hold the data and survive a loss, with a band, what binds,
what more load costs, and which measurement would narrow it most."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.experiments.levels import replicas
from harness.sizing import facts
from harness.sizing.curves import Curve
from harness.sizing.fits import BAND, HeldOut, band, narrowest
from harness.sizing.latency import Late, late
from harness.sizing.model import Model
from harness.sizing.node import Refused
from harness.sizing.plan import PROCESSOR, Plan, plan
from harness.sizing.requirement import Operations, Requirement
from harness.sizing.ways import WAYS, Way

# More nodes than these data say anything of.
MOST_NODES = 10_000
# What the answer says of a little more load is for so many times of it.
MORE_LOAD = 1.1

REPLICAS = "replicas"


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
    # What the rate of each kind rests on.
    curves: Mapping[str, tuple[Curve, ...]] = field(default_factory=dict)
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
    # Campaigns that are used and of which nothing could be held out: no other measured the same.
    untried: tuple[str, ...]


def size(model: Model, asked: Requirement) -> Sizing:
    """An answer for each kind of node, way and level."""
    answers = tuple(
        answer(model, asked, name, way, level)
        for name in asked.node
        for way in WAYS
        if way.system == asked.system
        for level in asked.levels
    )
    used = {curve.source for of in answers for curves in of.curves.values() for curve in curves}
    held_out = tuple(of for of in model.held_out if _concerns(of, asked, used))
    tried = {of.source for of in held_out}
    return Sizing(asked, answers, held_out, tuple(sorted(used - tried)))


def _concerns(of: HeldOut, asked: Requirement, used: set[str]) -> bool:
    """Whether a prediction shows how far off an answer may be: of rates that are used, or of what clusters share."""
    kinds = asked.operations.rates()
    if of.of_cluster:
        return asked.system == "cassandra"
    if of.of_mix:
        return len(kinds) > 1
    return of.source in used and any(of.what.startswith(kind) for kind in kinds)


def answer(model: Model, asked: Requirement, name: str, way: Way, level: str) -> Answer:
    """One row of the table."""
    node = asked.node[name]
    if refused := _too_few_replicas(asked, level):
        return Answer(name, way, level, refused)
    found = plan(model, asked, node, way, level)
    if isinstance(found, Refused):
        return Answer(name, way, level, found.reason)
    nodes = found.nodes()
    low, middle, high = band(nodes)
    if middle > MOST_NODES:
        return Answer(name, way, level, f"it takes more than {MOST_NODES:,} nodes")
    more = plan(model, _with_more_load(asked), node, way, level)
    assert not isinstance(more, Refused), "what carries a load is refused no more for a little more of it"
    more_nodes = more.nodes()
    more_middle = band(more_nodes)[1]
    usd = asked.node_usd(name)
    by_resource = {of.resource: float(np.quantile(found.alive_for(of), 0.5)) for of in found.demands}
    used = found.used(middle)
    lateness = tuple(late(model, rate, way, asked, used) for rate in found.rates.values())
    narrow = _narrow(found)
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
        late=lateness,
        more_nodes=int(more_middle - middle),
        more_usd=(more_middle - middle) * usd,
        more_chance=float(np.mean(more_nodes > nodes)),
        guesses=_guesses(found, int(middle), int(high), node.memory_gb, lateness),
        narrow=narrow[0] if narrow else "",
        narrowed=narrow[1] if narrow else 0.0,
        curves={kind: of.curves for kind, of in found.rates.items()},
        notes=tuple(of.note for of in found.demands if of.note),
    )


def _too_few_replicas(asked: Requirement, level: str) -> str | None:
    needed, left = replicas(level, asked.replication), max(0, asked.replication - asked.lost_nodes)
    if not asked.lost_nodes or needed <= left:
        return None
    if asked.system == "embedded":
        return "processes without replicas lose their part of the data with a node: lost_nodes = 0, or cassandra"
    return f"{level} needs {needed} of {asked.replication} replicas: {left} are left once {asked.lost_nodes} are lost"


def _with_more_load(asked: Requirement) -> Requirement:
    operations = asked.operations
    more = {kind: rate * MORE_LOAD for kind, rate in operations.rates().items()}
    return asked.model_copy(update={"operations": Operations(**{**operations.model_dump(), **more})})


def _binds(by_resource: Mapping[str, float], asked: Requirement) -> str:
    resource = max(by_resource, key=lambda of: by_resource[of])
    enough = math.ceil(by_resource[resource]) + asked.lost_nodes <= asked.replication
    return REPLICAS if enough and asked.replication > 1 else resource


def _narrow(found: Plan) -> tuple[str, float] | None:
    measures = {of.name: of.measure for of in found.unsure()}

    def width(without: str | None) -> float:
        low, high = np.quantile(np.log(np.maximum(found.alive(without), 1e-9)), BAND)
        return float(high - low)

    best = narrowest(width, list(measures))
    return (measures[best[0]], best[1]) if best else None


def _guesses(found: Plan, middle: int, most: int, node_memory_gb: float, lateness: Sequence[Late]) -> tuple[str, ...]:
    """Why the answer is none that was measured."""
    model, asked = found.model, found.asked
    said = [*found.guesses(), _less_cached(found, middle, node_memory_gb), *(of.guess for of in lateness)]
    relevant = found.relevant()
    if most > 1 and any(of.grows for of in relevant):
        said.append(_add_up(found, most))
    if asked.replication > 1 and any(of.resource == PROCESSOR for of in relevant):
        said.append(_answering(model, asked.replication))
    return tuple(dict.fromkeys(of for of in said if of))


def _add_up(found: Plan, most: int) -> str:
    """Why nobody knows that so many nodes add up."""
    if found.asked.system == "embedded":
        return "that processes with parts of the data add up was not measured"
    if not found.model.growth_known:
        return "no campaign measured several nodes"
    known = found.model.growth.most_nodes
    return f"{known} nodes were measured at most" if most > known else ""


def _answering(model: Model, replication: int) -> str:
    """Why nobody knows what so many replicas cost."""
    if not model.fanout_known:
        return "no campaign measured replicas"
    if replication not in (of.replication for of in model.observations):
        return f"replication {replication} was not measured"
    return "what replicas cost was measured with all nodes on one processor"


def _less_cached(found: Plan, nodes: int, node_memory_gb: float) -> str:
    """That less of the data is in memory than where reads of it were measured, where an engine caches what it reads."""
    asked = found.asked
    rate = found.rates.get("reads")
    if rate is None or found.way.is_aiodb or found.way.in_memory:
        return ""
    measured = min(of.memory_part for of in rate.curves)
    held = asked.data.rows_then * asked.data.record_bytes * min(1.0, asked.replication / nodes)
    here = node_memory_gb * 1e9 / held
    if here >= measured / facts.NEAR:
        return ""
    return f"reads were measured with {measured:.0%} of the data in memory, not {here:.0%}"
