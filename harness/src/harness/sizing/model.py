"""What all campaigns together say: how much one node does of each kind, how nodes add up, what replicas and mixing
cost; with everything that was predicted without itself."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.experiments.levels import replicas
from harness.sizing.curves import LEAST_PART, Curve, curves
from harness.sizing.evidence import Observation
from harness.sizing.fits import (
    END,
    Between,
    Fanout,
    Growing,
    Growth,
    HeldOut,
    Source,
    between,
    fanout,
    fanout_held_out,
    growth,
    growth_held_out,
    mean,
    spread,
)
from harness.sizing.ways import Way

# Fewer requests in flight may leave a node idle: such a campaign counts where there is no other.
ENOUGH_CLIENTS = 32
# How scans of different lengths are compared: a scan costs what its rows cost, and one row more.
COMPARED_ROWS = 50.0
WRITES = ("inserts", "updates")
# Where nothing was measured on several nodes, a further one is taken to bring something between all and half of it.
UNKNOWN_GROWTH = Growth(0.85, 0.12, 1)
UNKNOWN_FANOUT = Fanout(0.5, 0.4)
SHARED = "shared CPU"

# What campaigns have in common that measured the same: system, engine, where values lie, kind, durability.
_Measured = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Mixing:
    """How many times slower a mix of halves was than its parts come to by themselves: a logarithm, and its spread."""

    log_factor: float
    spread: float


@dataclass(frozen=True)
class Model:
    """Everything that a sizing knows."""

    curves: tuple[Curve, ...]
    observations: tuple[Observation, ...]
    beyond: Between
    growth: Growth
    growth_known: bool
    fanout: Fanout
    fanout_known: bool
    mixing: Mixing
    # Of a campaign that was measured once and at too few points for a law: what others were off by.
    single_variance: float
    held_out: tuple[HeldOut, ...]

    def pool(self, way: Way, kind: str) -> list[Curve]:
        """The curves that say how much a node does of a kind. Writes do not ask where values lie that are there."""
        return [of for of in self.curves if of.kind == kind and tells_of(of.way, way, kind) and of.shows_processor]

    def source(self, curve: Curve, p99_us: float | None, scan_rows: float) -> Source | None:
        """What a curve says of the most that a node does within a latency; None where it says nothing of that."""
        return _source(curve, p99_us, scan_rows, self.single_variance)

    def open_loop(self, way: Way, kind: str) -> list[Observation]:
        """What was measured with requests that came at a rate of their own."""
        return [of for of in self.observations if of.way == way and of.kind == kind and of.clients == 0]

    def level_wait(self, level: str, replication: int) -> float:
        """What a write costs at a level by what it costs at ONE, where all replicas take it anyway: from clusters of
        three; of other levels that of the next stricter one."""
        known = _write_waits(self.observations)
        if not known or replicas(level, replication) == 1:
            return 1.0
        strict = "ALL" if replicas(level, replication) == replication else "QUORUM"
        return max(1.0, known.get(strict, 1.0))

    def device_ratio(self) -> float:
        """The part of what a device gives that a store gets from it; 1 where nobody measured both."""
        return _device_ratio(self.observations)

    def device_reads_per_s(self) -> float | None:
        """The most that a device gave in a campaign; of several machines the median. None where nobody asked."""
        most: dict[str, float] = {}
        for of in self.observations:
            if of.device_per_s and of.kind == "reads":
                most[of.source] = max(most.get(of.source, 0.0), of.device_per_s)
        return statistics.median(most.values()) if most else None

    def inserts_per_write(self) -> tuple[float, float] | None:
        """How many inserts one write of a node's disk carries, where every insert waits for it, and its spread."""
        logs = [
            math.log(of.per_s / of.limits["node_writes_per_s"])
            for of in self.observations
            if of.kind == "inserts" and of.nodes == 1 and of.durability == "sync" and "node_writes_per_s" in of.limits
        ]
        if not logs:
            return None
        middle = statistics.fmean(logs)
        return math.exp(middle), spread([of - middle for of in logs])

    def disk_bytes(self, way: Way, kind: str, name: str) -> float | None:
        """Bytes that the disk reads or writes for an operation, by the bytes of a record; None where nobody asked."""
        found = [
            float(value) / of.record_bytes
            for of in self.observations
            if of.kind == kind and tells_of(of.way, way, kind) and (value := getattr(of, name)) is not None
        ]
        return statistics.median(found) if found else None


def tells_of(measured: Way, way: Way, kind: str) -> bool:
    """Whether what was measured in one way says something of a kind in another."""
    same = (measured.system, measured.engine) == (way.system, way.engine)
    return same and (kind in WRITES or measured == way)


def build(observations: Sequence[Observation]) -> Model:
    """The model of all that was measured."""
    found = curves(observations)
    own = [of for curve in found for of in curve.held_out]
    single = statistics.fmean(of.log_error**2 for of in own) if own else 0.0
    groups = _groups(found, single)
    beyond = between([[source for _, source in group] for group in groups.values()])
    growing = growth_points(observations)
    levels = read_levels(observations)
    mixed = mixing_held_out(observations, found)
    known_growth, known_fanout = growth(growing), fanout({name: rates for (_, name), rates in levels.items()})
    return Model(
        curves=tuple(found),
        observations=tuple(observations),
        beyond=beyond,
        growth=known_growth or UNKNOWN_GROWTH,
        growth_known=known_growth is not None,
        fanout=known_fanout or UNKNOWN_FANOUT,
        fanout_known=known_fanout is not None,
        mixing=_mixing([of.log_error for of in mixed]),
        single_variance=single,
        held_out=(
            *own,
            *_campaigns_held_out(groups),
            *growth_held_out(growing),
            *_disks_held_out(observations, growing),
            *_levels_held_out(levels),
            *_corrected(mixed),
        ),
    )


def _device_ratio(observations: Sequence[Observation]) -> float:
    ratios: dict[str, list[float]] = {}
    for of in observations:
        if of.device_per_s and of.kind == "reads":
            ratios.setdefault(of.source, []).append(min(1.0, of.per_s / of.device_per_s))
    return statistics.median(max(of) for of in ratios.values()) if ratios else 1.0


def _source(curve: Curve, p99_us: float | None, scan_rows: float, single: float) -> Source | None:
    best = curve.within(p99_us)
    if best is None:
        return None
    rate = best[1] * ((curve.scan_rows + 1) / (scan_rows + 1) if curve.kind == "scans" else 1.0)
    if own := curve.held_out:
        variance = statistics.fmean(of.log_error**2 for of in own)
    else:
        variance = single if curve.repeated is None else curve.repeated
    return Source(curve.source, math.log(rate), variance)


def _groups(found: Sequence[Curve], single: float) -> dict[_Measured, list[tuple[Curve, Source]]]:
    """Campaigns that measured the same, with enough clients and each kind alone."""
    groups: dict[_Measured, list[tuple[Curve, Source]]] = {}
    for curve in found:
        source = _source(curve, None, COMPARED_ROWS, single)
        if source is None or curve.mixed or not curve.shows_processor or curve.most_clients < ENOUGH_CLIENTS:
            continue
        place = "" if curve.kind in WRITES else curve.way.place
        key = (curve.way.system, curve.way.engine, place, curve.kind, curve.durability)
        groups.setdefault(key, []).append((curve, source))
    return groups


def _campaigns_held_out(groups: Mapping[_Measured, Sequence[tuple[Curve, Source]]]) -> list[HeldOut]:
    """What each campaign found, predicted from those that measured the same, with the band that all others give."""
    found = []
    for key, group in groups.items():
        for curve, left in group:
            others = [source for _, source in group if source.name != left.name]
            if not others:
                continue
            rest = [[of for _, of in members if of.name != left.name] for it, members in groups.items() if it != key]
            predicted = mean(others, between([others, *rest]))
            what = f"{curve.kind}, {curve.way.name}, from other campaigns"
            half = END * predicted.spread
            found.append(HeldOut(left.name, what, "the most", predicted.rate, left.rate, half_band=half))
    return found


def growth_points(observations: Sequence[Observation]) -> list[Growing]:
    """What several nodes did by what one did, under the most clients that both were measured with. Nodes that shared
    one processor say nothing of that, nor do those behind one entry node."""
    groups: dict[tuple[object, ...], dict[float, dict[int, float]]] = {}
    for of in observations:
        if of.kind and of.replication == 1 and "entry" not in of.limits and not any(SHARED in it for it in of.marks):
            by_clients = groups.setdefault((of.source, of.way.name, of.kind, of.setting), {})
            by_clients.setdefault(of.clients, {})[of.nodes] = of.per_s
    found = []
    for (source, *_), by_clients in groups.items():
        several = {clients: rates for clients, rates in by_clients.items() if 1 in rates and len(rates) > 1}
        if several:
            rates = several[max(several)]
            found += [
                Growing(str(source), nodes, rate / rates[1]) for nodes, rate in sorted(rates.items()) if nodes > 1
            ]
    return found


def _disks_held_out(observations: Sequence[Observation], growing: Sequence[Growing]) -> list[HeldOut]:
    """What nodes did whose disks were limited, as a sizing foretells it from their number and their limits: reads by
    the part of a device that stores get elsewhere, and each number of nodes by the growth of all the others."""
    ratio = _device_ratio(observations)
    found = []
    for of in observations:
        limit = of.limits.get("node_reads_per_s")
        if limit is None or of.kind != "reads" or of.replication != 1 or "entry" in of.limits:
            continue
        law = growth([it for it in growing if (it.source, it.nodes) != (of.source, of.nodes)])
        predicted = limit * ratio * (law or UNKNOWN_GROWTH).times(of.nodes)
        found.append(
            HeldOut(of.source, "reads/s of nodes, by their disks", f"{of.nodes} nodes", predicted, of.per_s, True)
        )
    return found


def read_levels(observations: Sequence[Observation]) -> dict[tuple[str, str], dict[int, float]]:
    """Reads/s of all nodes by the replicas that must answer, of each campaign and engine. Where all nodes share one
    processor these show what an operation takes of all of them."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for of in observations:
        if of.kind == "reads" and of.replication > 1:
            found.setdefault((of.source, of.way.engine), {})[replicas(of.level, of.replication)] = of.per_s
    return found


def _levels_held_out(levels: Mapping[tuple[str, str], Mapping[int, float]]) -> list[HeldOut]:
    found = []
    for (source, engine), rates in levels.items():
        names = {copies: f"{copies} replicas" for copies in rates}
        found += fanout_held_out(source, {f"reads, {engine}": rates}, names)
    return found


def _write_waits(observations: Sequence[Observation]) -> dict[str, float]:
    """What a write takes at a level by what it takes at ONE, over all engines."""
    rates: dict[tuple[str, str], dict[str, float]] = {}
    for of in observations:
        if of.kind == "inserts" and of.replication > 1:
            rates.setdefault((of.source, of.way.engine), {})[of.level] = of.per_s
    waits: dict[str, list[float]] = {}
    for by_level in rates.values():
        for level, rate in by_level.items():
            if "ONE" in by_level:
                waits.setdefault(level, []).append(by_level["ONE"] / rate)
    return {level: statistics.fmean(of) for level, of in waits.items()}


def mixing_held_out(observations: Sequence[Observation], found: Sequence[Curve]) -> list[HeldOut]:
    """Mixes of two kinds in halves, predicted from what other campaigns did of each kind by itself with as many
    clients; of updates, where nobody measured them alone, from inserts."""
    predicted = []
    for of in observations:
        if of.kind is not None or not of.is_plain or min(of.mix.values()) < LEAST_PART:
            continue
        rates = {
            kind: _alone(of, kind, found) or (_alone(of, "inserts", found) if kind == "updates" else None)
            for kind in of.mix
        }
        if all(rates.values()):
            taken = sum(part / float(rates[kind] or 1) for kind, part in of.mix.items())
            what = f"{' and '.join(of.mix)} mixed, {of.way.name}"
            predicted.append(HeldOut(of.source, what, f"{of.clients:g} clients", 1 / taken, of.per_s, of_mix=True))
    return predicted


def _alone(of: Observation, kind: str, found: Sequence[Curve]) -> float | None:
    rates = [
        rate
        for curve in found
        if curve.kind == kind
        and not curve.mixed
        and tells_of(curve.way, of.way, kind)
        and (rate := curve.per_s(of.clients)) is not None
    ]
    return statistics.geometric_mean(rates) if rates else None


def _mixing(logs: Sequence[float]) -> Mixing:
    if not logs:
        return Mixing(0.0, 0.0)
    middle = statistics.fmean(logs)
    return Mixing(max(0.0, middle), spread([of - middle for of in logs]) if len(logs) > 1 else abs(middle))


def _corrected(mixed: Sequence[HeldOut]) -> list[HeldOut]:
    """The same predictions, each made slower by what the others were off by."""
    found = []
    for number, of in enumerate(mixed):
        others = [it.log_error for place, it in enumerate(mixed) if place != number]
        factor = math.exp(-max(0.0, statistics.fmean(others))) if others else 1.0
        found.append(replace(of, predicted=of.predicted * factor))
    return found
