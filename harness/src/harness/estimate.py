"""How many nodes a requirement takes, from what a campaign has measured: the purpose of the documents behind the
campaigns. Where the data do not support an answer, that is the answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.errors import HarnessError
from harness.experiments.levels import replicas
from harness.fields import levels_text
from harness.results import Point, Results
from harness.scaling import LEAST_POINTS, Errors, Law, errors, fit, held_out

# An estimate whose law is off by more than this at points that it was not fitted to is not given.
MOST_ERROR = 0.20
KINDS = {"read": ("readonly", "workloadc"), "insert": ("writeonly", "sensor")}


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
class Capacity:
    """What one node does of one kind of operation."""

    kind: str
    # Clients at which the 99th percentile is within the requirement, and the rate that the law gives for them.
    clients: float
    per_s: float
    law: Law
    errors: Errors


@dataclass(frozen=True)
class Mode:
    """One way to store the data, and what it takes."""

    name: str
    nodes: int
    nodes_for_load: float
    nodes_for_bytes: float
    usd: float


@dataclass(frozen=True)
class Estimate:
    """An answer, with the capacities that it rests on."""

    capacities: tuple[Capacity, ...]
    gigabytes: float
    # Relative, to either side.
    band: float
    modes: tuple[Mode, ...]

    def cheapest(self) -> Mode:
        """The mode that costs least."""
        return min(self.modes, key=lambda mode: mode.usd)


def estimate(results: Results, engine: str, requirement: Requirement, prices: Prices) -> Estimate:
    """The answer to a requirement; raises HarnessError where the data do not support one."""
    if replicas(requirement.level, requirement.replication) > requirement.replication:
        raise HarnessError(f"level {requirement.level} asks for more replicas than {requirement.replication}")
    points = one_node(results, engine)
    asked = {"read": requirement.reads_per_s, "insert": requirement.inserts_per_s}
    capacities = {kind: capacity(points, kind, requirement.p99_ms) for kind, rate in asked.items() if rate > 0}
    if not capacities:
        raise HarnessError("nothing is asked for: give --reads-per-s or --inserts-per-s")
    # Each insert goes to all replicas, whatever the level; a read to as many as the level asks for.
    copies = {"read": replicas(requirement.level, requirement.replication), "insert": requirement.replication}
    busy = sum(asked[kind] * copies[kind] / of.per_s for kind, of in capacities.items())
    load = busy / (1 - requirement.headroom)
    grown = requirement.gigabytes + requirement.growth_gigabytes_per_day * requirement.days
    stored = grown * requirement.replication / (1 - requirement.headroom)
    rooms = {
        "values on SSD": (prices.node_ssd_gigabytes, prices.ssd_per_gigabyte),
        "all in memory": (prices.node_dram_gigabytes, prices.dram_per_gigabyte),
    }
    modes = [_mode(name, load, stored, room, usd, requirement, prices) for name, (room, usd) in rooms.items()]
    band = max(of.errors.law_most for of in capacities.values())
    return Estimate(tuple(capacities.values()), grown, band, tuple(modes))


def _mode(
    name: str, load: float, stored: float, room: float, usd: float, requirement: Requirement, prices: Prices
) -> Mode:
    nodes = max(math.ceil(load), math.ceil(stored / room), requirement.replication)
    return Mode(name, nodes, load, stored / room, nodes * prices.node + stored * usd)


def one_node(results: Results, engine: str) -> list[Point]:
    """The points of one engine on one node, each record once; of a campaign over stores, the points of a store, whose
    process is then a node."""
    points = [
        point
        for point in results.points()
        if point.levels.get("engine", point.store) == engine
        and point.levels.get("nodes", 1) == 1
        and point.levels.get("replication", 1) == 1
        and "threads" in point.levels
        and point.rows
    ]
    if not points:
        raise HarnessError(
            f"{results.campaign.name} {results.variant.name} has measured no single node of engine {engine!r}: "
            "choose a campaign that has, such as load, or threads and queue-depth for a store without Cassandra"
        )
    return points


def capacity(points: Sequence[Point], kind: str, p99_ms: float) -> Capacity:
    """What a node does of a kind within a latency; raises HarnessError where it was not measured, or not well."""
    per_s, p99 = curve(points, kind)
    if len(per_s) < LEAST_POINTS:
        raise HarnessError(
            f"{kind}s were measured at {len(per_s)} counts of clients: {LEAST_POINTS} at least show a curve"
        )
    found = errors(held_out(per_s))
    if found.law > MOST_ERROR:
        raise HarnessError(
            f"the data do not support an estimate of {kind}s: at points left out the law is off by {found.law:.0%}"
        )
    within = [clients for clients, of in p99.items() if of <= 1000 * p99_ms]
    if not within:
        raise HarnessError(
            f"no number of clients had {kind}s within {p99_ms:g} ms at the 99th percentile: the least was "
            f"{min(p99.values()) / 1000:.3g} ms"
        )
    law = fit(per_s)
    clients = max(within, key=law.per_s)
    return Capacity(kind, clients, law.per_s(clients), law, found)


def curve(points: Sequence[Point], kind: str) -> tuple[dict[float, float], Mapping[float, float]]:
    """Operations/s and the 99th percentile in µs by clients, of what does this kind alone: a workload, or the gets of
    queue-depth, of which each in flight counts as a client."""
    per_s, p99 = {}, {}
    for point in points:
        if "depth" in point.levels:
            alone, of_rate, of_late = kind == "read", "gets_per_s", "p99_us"
        else:
            alone, of_rate, of_late = point.levels.get("workload") in KINDS[kind], "operations_per_s", f"{kind}_p99_us"
        rate, late = point.summary(of_rate), point.summary(of_late)
        if alone and rate is not None and late is not None:
            clients = float(point.levels["threads"]) * float(point.levels.get("depth", 1))
            if clients in per_s:
                raise HarnessError(
                    f"{kind}s of {clients:g} clients were measured in several ways, one of them "
                    f"{levels_text(point.levels)}: an estimate needs a variant with one of them"
                )
            per_s[clients], p99[clients] = rate.median, late.median
    return per_s, p99


def text(found: Estimate, requirement: Requirement) -> str:
    """The answer in words."""
    lines = []
    for of in found.capacities:
        lines.append(
            f"one node: {of.per_s:,.0f} {of.kind}s/s by {of.clients:g} clients within {requirement.p99_ms:g} ms at the "
            f"99th percentile; at counts of clients left out the law is off by {of.errors.law:.0%} (at most "
            f"{of.errors.law_most:.0%}), carrying the last point forward by {of.errors.carried:.0%}, scaling linearly "
            f"by {of.errors.linear:.0%}"
        )
    lines.append(f"data: {found.gigabytes:,.0f} GB, {requirement.replication} times, {requirement.headroom:.0%} free")
    for mode in found.modes:
        least, most = mode.nodes_for_load * (1 - found.band), mode.nodes_for_load * (1 + found.band)
        lines.append(
            f"{mode.name}: {mode.nodes} nodes, {mode.usd:,.0f} USD (the load takes {mode.nodes_for_load:.1f}, between "
            f"{least:.1f} and {most:.1f}; the bytes {mode.nodes_for_bytes:.1f}; the replicas {requirement.replication})"
        )
    lines.append(f"cheapest: {found.cheapest().name}")
    if found.cheapest().nodes > 1:
        lines.append("that nodes add up was not measured here: count on less, and measure with the first of them")
    return "\n".join(lines)
