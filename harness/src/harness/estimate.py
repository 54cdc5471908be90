"""How many nodes a requirement takes, from what a campaign has measured: the purpose of the documents behind the
campaigns. Where the data do not support an answer, that is the answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.capacity import Capacity, Growth, capacity, engines, growth, measured
from harness.errors import HarnessError
from harness.experiments.levels import replicas
from harness.experiments.ycsb import DEVICE_STORE
from harness.fields import levels_text
from harness.results import Results
from harness.scaling import LEAST_POINTS, Errors, verdict

ON_SSD, IN_MEMORY = "values on SSD", "all in memory"
# A load that takes more nodes is none that these data say anything of.
MOST_NODES = 10_000


@dataclass(frozen=True)
class Requirement:
    """What is asked of a cluster."""

    reads_per_s: float
    inserts_per_s: float
    # The 99th percentile of each kind, at most.
    p99_ms: float
    gigabytes: float
    growth_gigabytes_per_day: float
    days: float
    replication: int
    level: str
    # The part of each node that stays unused.
    headroom: float


@dataclass(frozen=True)
class Prices:
    """What things cost, in US dollars, and how much of them a node takes."""

    node: float
    dram_per_gigabyte: float
    ssd_per_gigabyte: float
    node_dram_gigabytes: float
    node_ssd_gigabytes: float


@dataclass(frozen=True)
class Nodes:
    """A number of nodes, and between which it lies if the laws are off by as much as they were at held-out points."""

    expected: float
    least: float
    # Infinite where no number of nodes is enough, or nothing is known.
    most: float

    def at_least(self, nodes: float) -> "Nodes":
        """The same where so many are needed anyway."""
        return Nodes(max(self.expected, nodes), max(self.least, nodes), max(self.most, nodes))


@dataclass(frozen=True)
class Load:
    """What the operations take of nodes of one engine."""

    engine: str
    capacities: tuple[Capacity, ...]
    # By kind of operation; without those of which nothing was measured on several nodes.
    growths: Mapping[str, Growth]
    nodes: Nodes

    @property
    def assumes_growth(self) -> bool:
        """Whether it may take several nodes, and that they do as many times what one does is not from the data."""
        lawful = {kind for kind, of in self.growths.items() if of.law}
        return self.nodes.most > 1 and any(of.kind not in lawful for of in self.capacities)


@dataclass(frozen=True)
class Mode:
    """One way to store the data, and what it takes."""

    name: str
    # None where no rate was measured with the data stored so.
    load: Load | None
    nodes_for_bytes: float
    # For load, bytes and replicas; without a load at least so many.
    nodes: Nodes
    node_usd: float
    bytes_usd: float

    def usd(self, nodes: float) -> float:
        """What it costs on so many nodes."""
        return nodes * self.node_usd + self.bytes_usd


@dataclass(frozen=True)
class Estimate:
    """An answer for each way to store the data."""

    gigabytes: float
    modes: tuple[Mode, ...]
    # The campaigns of one node's rates and of several nodes', with the limits of each node.
    source: str
    grown_source: str

    def cheapest(self) -> Mode | None:
        """The mode that costs less than the others even where it takes the most nodes and they the least; None where
        the data do not say which."""
        for mode in self.modes:
            others = [of.usd(of.nodes.least) for of in self.modes if of is not mode]
            if all(mode.usd(mode.nodes.most) < usd for usd in others):
                return mode
        return None


def estimate(
    results: Results, named: Sequence[str], requirement: Requirement, prices: Prices, grown: Results | None = None
) -> Estimate:
    """The answer to a requirement, by one engine for each way to store the data. How nodes add up is taken from
    `grown`, or from the same results. Raises HarnessError where the data do not support an answer."""
    if replicas(requirement.level, requirement.replication) > requirement.replication:
        raise HarnessError(f"level {requirement.level} asks for more replicas than {requirement.replication}")
    grown = grown or results
    loads: dict[str, Load] = {}
    for engine in named:
        known = engines(results)
        if engine not in known:
            raise HarnessError(
                f"{_source(results)} has measured no single node of engine {engine!r} under numbers of clients: "
                + (f"it has {', '.join(known)}" if known else "choose a campaign that has, such as load or threads")
            )
        mode = stored(results, engine)
        if mode in loads:
            raise HarnessError(f"{loads[mode].engine} and {engine} were both measured with {mode}: name one of them")
        loads[mode] = _load(results, grown, engine, requirement)
    data = requirement.gigabytes + requirement.growth_gigabytes_per_day * requirement.days
    kept = data * requirement.replication / (1 - requirement.headroom)
    rooms = {
        ON_SSD: (prices.node_ssd_gigabytes, prices.ssd_per_gigabyte),
        IN_MEMORY: (prices.node_dram_gigabytes, prices.dram_per_gigabyte),
    }
    modes = []
    for name, (room, usd) in rooms.items():
        load = loads.get(name)
        needed = max(math.ceil(kept / room), requirement.replication)
        nodes = load.nodes.at_least(needed) if load else Nodes(needed, needed, math.inf)
        modes.append(Mode(name, load, kept / room, nodes, prices.node, kept * usd))
    return Estimate(data, tuple(modes), _source(results), _source(grown))


def stored(results: Results, engine: str) -> str:
    """Where an engine's data were when it was measured. aiodb asks the device for each value, whatever the size of the
    data; others have them in memory, their own or the page cache, as long as what was loaded fits."""
    if engine == DEVICE_STORE:
        return ON_SSD
    parameters = results.variant.parameters
    loaded = math.prod(float(parameters.get(name, 0)) for name in ("records", "fields", "field_bytes"))
    memory = int(parameters.get("node_memory_mib", 0)) << 20 or results.origin.identity.memory_bytes
    return IN_MEMORY if loaded < memory else ON_SSD


def _source(results: Results) -> str:
    parameters = results.variant.parameters
    limits = {name: of for name, of in parameters.items() if name.startswith("node_") and isinstance(of, int) and of}
    limited = f" (each node limited: {levels_text(limits)})" if limits else ""
    return f"{results.campaign.name} {results.variant.name}{limited}"


def _load(results: Results, grown: Results, engine: str, requirement: Requirement) -> Load:
    asked = {"read": requirement.reads_per_s, "insert": requirement.inserts_per_s}
    # Each insert goes to all replicas, whatever the level; a read to as many as the level asks for.
    copies = {"read": replicas(requirement.level, requirement.replication), "insert": requirement.replication}
    capacities = {
        kind: capacity(measured(results, engine, kind), kind, requirement.p99_ms)
        for kind, rate in asked.items()
        if rate > 0
    }
    if not capacities:
        raise HarnessError("nothing is asked for: give --reads-per-s or --inserts-per-s")
    growths = {kind: of for kind in capacities if (of := growth(measured(grown, engine, kind)))}
    # What one node would have to do of each kind, by what it does of that kind alone.
    wanted = {kind: asked[kind] * copies[kind] / of.per_s for kind, of in capacities.items()}
    off = {kind: (of.errors.law_most, _growth_error(growths.get(kind))) for kind, of in capacities.items()}
    more = {kind: times * (1 + off[kind][0]) * (1 + off[kind][1]) for kind, times in wanted.items()}
    less = {kind: times * max(0.0, 1 - off[kind][0]) * (1 - off[kind][1]) for kind, times in wanted.items()}
    used = 1 - requirement.headroom
    nodes = Nodes(*(_nodes(times, growths, used) for times in (wanted, less, more)))
    if math.isinf(nodes.expected):
        raise HarnessError(
            f"the load takes {sum(wanted.values()) / used:.1f} times what one node of {engine} does, and as nodes add "
            f"up in {_source(grown)} no number up to {MOST_NODES:,} does that: the data do not support an answer"
        )
    return Load(engine, tuple(capacities.values()), growths, nodes)


def _growth_error(of: Growth | None) -> float:
    return of.errors.law if of and of.law and of.errors else 0.0


def _nodes(wanted: Mapping[str, float], growths: Mapping[str, Growth], used: float) -> float:
    """The fewest nodes of which the operations take no more than the part that may be used; infinite where none are
    enough, since the law of some clusters has them do less from some number of nodes on."""
    for nodes in range(1, MOST_NODES + 1):
        times = {kind: growths[kind].times(nodes) if kind in growths else nodes for kind in wanted}
        if sum(wanted[kind] / times[kind] for kind in wanted) <= used:
            return nodes
    return math.inf


def text(found: Estimate, requirement: Requirement) -> str:
    """The answer in words."""
    lines = []
    for mode in found.modes:
        if mode.load:
            lines += _load_lines(found, mode.load, requirement)
    lines.append(f"data: {found.gigabytes:,.0f} GB, {requirement.replication} times, {requirement.headroom:.0%} free")
    lines += [_mode_line(mode, requirement) for mode in found.modes]
    lines.append(_cheapest_line(found))
    lines.append(f"measured by no campaign: {DEVICE_STORE}'s own modes with keys, or keys and values, held in memory")
    return "\n".join(lines)


def _load_lines(found: Estimate, load: Load, requirement: Requirement) -> list[str]:
    lines = []
    for of in load.capacities:
        lines += [
            f"one node of {load.engine}, {found.source}: {of.per_s:,.0f} {of.kind}s/s by {of.clients:g} clients within "
            f"{requirement.p99_ms:g} ms at the 99th percentile",
            f"  rests on {of.evidence}",
            f"  at counts of clients left out {_errors(of.errors)}"
            + ("" if verdict(of.errors).supported else "; the answer rests on it all the same, as its band says"),
        ]
        if grown := load.growths.get(of.kind):
            lines += [f"several nodes of {load.engine}, {found.grown_source}: {_growth(grown, of.kind)}"]
            lines += [f"  rests on {grown.evidence}", f"  at {max(grown.per_s):g} nodes {_growth_errors(grown)}"]
        elif load.nodes.most > 1:
            lines.append(
                f"several nodes of {load.engine}: that their {of.kind}s add up was not measured here: count on less, "
                "and measure with the first of them, or name a campaign that has with --growth"
            )
    return lines


def _errors(of: Errors) -> str:
    most = f" (at most {of.law_most:.0%})" if of.law_most > of.law else ""
    return (
        f"the law is off by {of.law:.0%}{most}, carrying the last point forward by {of.carried:.0%}, scaling linearly "
        f"by {of.linear:.0%}: {verdict(of).words}"
    )


def _growth(of: Growth, kind: str) -> str:
    most = max(of.per_s)
    return (
        f"{most:g} did {of.per_s[most] / of.per_s[1]:.1f} times the {kind}s of one, by {of.clients:g} clients each time"
    )


def _growth_errors(of: Growth) -> str:
    linear = f"N × one node is off by {of.linear_error:.0%}"
    assumed = "and is assumed all the same: count on more nodes"
    if of.errors is None:
        return f"{linear}, {assumed}; a law takes {LEAST_POINTS} numbers of nodes"
    if of.law is None:
        return f"{linear}, {assumed}; fitted to fewer, {_errors(of.errors)}"
    return f"{linear}; fitted to fewer, {_errors(of.errors)}; of more nodes nothing was measured"


def _mode_line(mode: Mode, requirement: Requirement) -> str:
    needed = f"the bytes {mode.nodes_for_bytes:.1f}; the replicas {requirement.replication}"
    cost = f"{mode.nodes.expected:,.0f} nodes, {mode.usd(mode.nodes.expected):,.0f} USD"
    if mode.load is None:
        return f"{mode.name}: at least {cost} ({needed}; no rate was measured so: a second --engine may have one)"
    of = mode.load.nodes
    between = f"{of.least:,.0f} or more" if math.isinf(of.most) else f"between {of.least:,.0f} and {of.most:,.0f}"
    least = "at least " if mode.load.assumes_growth else ""
    return f"{mode.name}, {mode.load.engine}: {least}{cost} (the load takes {of.expected:,.0f}, {between}; {needed})"


def _cheapest_line(found: Estimate) -> str:
    unmeasured = [mode.name for mode in found.modes if mode.load is None]
    if cheapest := found.cheapest():
        assumed = ", if nodes add up" if cheapest.load and cheapest.load.assumes_growth else ""
        why = f": bytes and replicas alone make {unmeasured[0]} dearer, whatever its rate" if unmeasured else ""
        return f"cheapest{assumed}: {cheapest.name}{why}"
    if unmeasured:
        return f"cheapest: not known, since no rate of {unmeasured[0]} was measured"
    return "cheapest: not known, since the costs differ by less than they may be off"
