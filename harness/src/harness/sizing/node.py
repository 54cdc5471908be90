"""What one kind of node does for a requirement in one way to store the data, resource by resource; and what that rests
on, with what is a guess and how wide it is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from harness.experiments.levels import replicas
from harness.scaling import MOST_ERROR
from harness.sizing import facts
from harness.sizing.curves import Curve
from harness.sizing.fits import END, Mean, mean, pairs_of, spread
from harness.sizing.model import ENOUGH_CLIENTS, WRITES, Model
from harness.sizing.requirement import Node, Requirement
from harness.sizing.ways import Way


@dataclass(frozen=True)
class Unsure:
    """One thing that a rate may be off by: a normal distribution of its logarithm."""

    name: str
    spread: float
    # Why it is a guess; empty where it was measured.
    guess: str
    # What would be measured to know it better.
    measure: str


@dataclass(frozen=True)
class Rate:
    """What one node does of one kind by itself, with all of its processor."""

    kind: str
    per_s: float
    # The same on as many cores, and with records, as it was measured with.
    measured_per_s: float
    unsure: tuple[Unsure, ...]
    # What it rests on.
    curves: tuple[Curve, ...]
    # Whether what other kinds cost beside it is in it already.
    mixed: bool


@dataclass(frozen=True)
class Refused:
    """Why there is no number."""

    reason: str


def measure_of(way: Way, kind: str) -> str:
    """The command that measures a kind alone."""
    if way.system == "cassandra":
        campaign = "ycsb SLICE=cassandra" if kind == "scans" else "load"
        return f"{kind} of one such node: make campaign NAME={campaign}"
    over_threads = "ycsb SLICE=threads"
    campaign = {"reads": "queue-depth" if way.is_aiodb else over_threads, "inserts": over_threads}.get(kind, "ycsb")
    return f"{kind} on such a machine: make campaign NAME={campaign}"


def rate_of(model: Model, way: Way, kind: str, asked: Requirement, node: Node) -> Rate | Refused:
    """What such a node does of a kind within the latency; Refused where no campaign says so."""
    pool = model.pool(way, kind)
    if not pool:
        return Refused(f"no campaign measured {kind} of {way.name}")
    limit = asked.p99_us(kind)
    within = [of for of in pool if of.within(limit)]
    if not within:
        return Refused(_too_late(pool, kind, limit))
    best = _best(within, asked.durability if kind in WRITES else None)
    sources = [source for of in best if (source := model.source(of, limit, asked.operations.scan_rows))]
    found = mean(sources, model.beyond)
    unsure = [
        Unsure(f"{kind} of one node", found.spread, _wide(found, kind), measure_of(way, kind)),
        *_few_clients(best, kind),
        *_far(best, way, kind, asked, node),
    ]
    if kind in WRITES and best[0].durability != asked.durability:
        words = f"{kind} were measured with durability {best[0].durability} only"
        unsure.append(
            Unsure(
                "durability",
                math.log(facts.DURABILITY_FACTOR) / END,
                words,
                f'{kind} with durability {asked.durability}: make campaign NAME=load with commit_log = "batch"',
            )
        )
    return Rate(
        kind,
        _scaled(found, best, asked, node),
        found.rate,
        tuple(unsure),
        tuple(best),
        all(of.mixed for of in best),
    )


def _best(within: list[Curve], durability: str | None) -> list[Curve]:
    """The curves that say most of what a node does: those with enough clients, of the durability that is asked for, and
    of a kind alone come first. Clients that wait for a device with each write leave a node idle if they are few."""
    ranks = [(_is_busy(of), durability in (None, of.durability), not of.mixed) for of in within]
    best = max(ranks)
    found = [of for of, rank in zip(within, ranks, strict=True) if rank == best]
    # Of another durability there may be several: one of them is taken, lest a mean be of two.
    return [of for of in found if of.durability == found[0].durability] if durability else found


def _is_busy(of: Curve) -> bool:
    return of.most_clients >= ENOUGH_CLIENTS


def _too_late(known: list[Curve], kind: str, limit: float | None) -> str:
    late = [of.p99_us for curve in known for of in curve.points if of.p99_us is not None]
    if not late:
        return f"no campaign has the 99th percentile of {kind} here: without a limit there is an answer"
    return f"no number of clients had {kind} within {(limit or 0) / 1000:g} ms: the least was {min(late) / 1000:.3g} ms"


def _doublings(curves: list[Curve], node: Node) -> float:
    return math.log2(node.cores / curves[0].cores)


def _scaled(found: Mean, best: list[Curve], asked: Requirement, node: Node) -> float:
    """The mean of what was measured, for such a node and such records, by the middle of what is assumed."""
    per_doubling = math.sqrt(facts.CORES_PER_DOUBLING[0] * facts.CORES_PER_DOUBLING[1])
    size = max(1.0, asked.data.record_bytes / _record_bytes(best))
    power = sum(facts.SIZE_POWER) / 2 if size > facts.NEAR else 0.0
    return float(found.rate * per_doubling ** _doublings(best, node) / size**power)


def _record_bytes(best: list[Curve]) -> float:
    return math.exp(sum(math.log(of.record_bytes) for of in best) / len(best))


def _far(best: list[Curve], way: Way, kind: str, asked: Requirement, node: Node) -> list[Unsure]:
    """What is another than where it was measured, each with how much that may matter."""
    found = []
    if doublings := abs(_doublings(best, node)):
        low, high = facts.CORES_PER_DOUBLING
        words = f"measured on {best[0].cores} cores, not {node.cores}"
        campaign = "load" if way.system == "cassandra" else "ycsb SLICE=threads"
        measure = f"a node of {node.cores} cores: make campaign NAME={campaign} on one"
        found.append(Unsure("cores", doublings * math.log(high / low) / 2 / END, words, measure))
    records = _record_bytes(best)
    size = asked.data.record_bytes / records
    if not 1 / facts.NEAR <= size <= facts.NEAR:
        low, high = facts.SIZE_POWER
        words = f"{kind} were measured with records of {records:,.0f} bytes, not {asked.data.record_bytes:,}"
        measure = f"records of {asked.data.record_bytes:,} bytes: field_bytes of the campaign"
        found.append(Unsure("size of a record", abs(math.log(size)) * (high - low) / 2 / END, words, measure))
    rows = max(of.rows for of in best)
    if asked.data.rows_then > facts.FAR_ROWS * rows:
        words = f"{kind} were measured on {rows:,.0f} rows, not {asked.data.rows_then:,.0f}"
        measure = "as many rows as a node would have: records of the campaign"
        found.append(Unsure("rows of a node", math.log(facts.FAR_ROWS_FACTOR) / END, words, measure))
    if kind == "scans":
        found += _far_scans(best, asked.operations.scan_rows)
    return found


def _far_scans(best: list[Curve], scan_rows: int) -> list[Unsure]:
    """That scans were shorter or longer."""
    measured = sorted({of.scan_rows for of in best})
    off = max(max(scan_rows / of, of / scan_rows) for of in measured)
    if off <= facts.NEAR:
        return []
    words = f"measured with scans of {', '.join(f'{of:g}' for of in measured)} rows, not {scan_rows}"
    measure = "scans as long as yours: maxscanlength of workloads/workloade"
    return [Unsure("rows of a scan", math.log(off) / 4 / END, words, measure)]


def _wide(found: Mean, kind: str) -> str:
    """That a rate is a guess by itself, since nobody knows it well; empty where somebody does."""
    factor = math.exp(END * found.spread)
    if factor <= 1 + MOST_ERROR:
        return ""
    return f"what a node does of {kind} is known within a factor of {factor:.2f}, and not within {MOST_ERROR:.0%}"


def _few_clients(best: list[Curve], kind: str) -> list[Unsure]:
    if any(map(_is_busy, best)):
        return []
    clients = max(of.most_clients for of in best)
    words = f"{kind} were measured with {clients:g} clients at most, which may leave a node idle"
    return [Unsure("number of clients", 0.0, words, f"{kind} with {ENOUGH_CLIENTS} clients and more")]


@dataclass(frozen=True)
class Demand:
    """What of one resource all operations take of a cluster, in nodes that do nothing else."""

    resource: str
    # By kind: nodes at the middle of what is known, and what that may be off by.
    parts: Mapping[str, float]
    unsure: Mapping[str, tuple[Unsure, ...]]
    # Whether nodes add up as they did where they were measured; else evenly.
    grows: bool = True
    note: str = ""


def copies_of(kind: str, level: str, replication: int) -> int:
    """How many replicas work for an operation: all for a write, whatever the level."""
    return replication if kind in WRITES else replicas(level, replication)


def disk_demands(model: Model, way: Way, level: str, asked: Requirement, node: Node) -> list[Demand] | Refused:
    """Reads, writes and bytes of the disks."""
    rates = asked.operations.rates()
    found = []
    reads, note = node.disk_reads_per_s, ""
    asks_disk = {"reads", "scans"} & set(rates) and not way.in_memory
    if asks_disk and reads is None:
        reads = model.device_reads_per_s()
        if reads is None:
            return Refused("give the node's disk_reads_per_s: no campaign measured a disk")
        note = f"the node's disk_reads_per_s is not given: {reads:,.0f}, as of the disks of the campaigns"
    if asks_disk and reads is not None:
        each = _reads_each(model, way)
        wanted = {
            kind: rates[kind] * copies_of(kind, level, asked.replication) * rows * each / reads / model.device_ratio()
            for kind, rows in (("reads", 1), ("scans", asked.operations.scan_rows))
            if kind in rates
        }
        unsure = Unsure("reads of the disk", 0.05, note, "the disk of such a node: make campaign NAME=queue-depth")
        found.append(Demand("reads", wanted, dict.fromkeys(wanted, (unsure,))))
    writes = {kind: rates[kind] * asked.replication for kind in WRITES if kind in rates}
    if writes and asked.durability == "sync" and way.system == "cassandra":
        carried = model.inserts_per_write()
        if node.disk_writes_per_s is None:
            return Refused("durability sync needs the node's disk_writes_per_s")
        if carried is None:
            return Refused("no campaign measured how many inserts one write of a disk carries: run clients-disk")
        unsure = Unsure(
            "inserts in a write of the disk", carried[1], "", "make campaign NAME=clients-disk with such disks"
        )
        wanted = {kind: rate / carried[0] / node.disk_writes_per_s for kind, rate in writes.items()}
        found.append(Demand("writes", wanted, dict.fromkeys(wanted, (unsure,))))
    if node.disk_mb_per_s is not None and (by_kind := _disk_bytes(model, way, level, asked)):
        wanted = {kind: of / node.disk_mb_per_s / 1e6 for kind, of in by_kind.items()}
        unsure = Unsure("bytes of the disk", 0.2, "", "bytes of the disk per operation: scripts/bench-cassandra.sh")
        found.append(Demand("disk bytes", wanted, dict.fromkeys(wanted, (unsure,))))
    return found


def _reads_each(model: Model, way: Way) -> float:
    """Reads of the disk for a row that memory does not have."""
    if way.is_aiodb:
        return facts.READS_PER_GET.value
    each = model.disk_bytes(way, "reads", "read_bytes")
    return max(1.0, (each or 0.0) * 1000 / facts.READ_AHEAD_BYTES)


def _disk_bytes(model: Model, way: Way, level: str, asked: Requirement) -> dict[str, float]:
    """Bytes/s of all disks by kind, as far as anybody measured them."""
    rates, record = asked.operations.rates(), asked.data.record_bytes
    found = {}
    for kind, rate in rates.items():
        name = "written_bytes" if kind in WRITES else "read_bytes"
        if kind not in WRITES and way.in_memory:
            continue
        rows = asked.operations.scan_rows if kind == "scans" else 1
        each = model.disk_bytes(way, "reads" if kind == "scans" else kind, name)
        if each is not None:
            found[kind] = rate * copies_of(kind, level, asked.replication) * rows * each * record
    return found


def network_demand(way: Way, level: str, asked: Requirement, node: Node) -> Demand | None:
    """Bytes that nodes send: answers to clients, and rows between nodes. A read gets the row from one replica and a
    checksum from each other."""
    if node.network_gbit_per_s is None or way.system == "embedded":
        return None
    message, record = facts.MESSAGE_BYTES.value, asked.data.record_bytes
    node_bytes = node.network_gbit_per_s * 1e9 / 8
    wanted = {}
    for kind, rate in asked.operations.rates().items():
        copies = copies_of(kind, level, asked.replication)
        if kind in WRITES:
            sent = copies * (record + message) + message
        else:
            rows = asked.operations.scan_rows if kind == "scans" else 1
            sent = 2 * (rows * record + message) + (copies - 1) * 2 * message
        wanted[kind] = rate * sent / node_bytes
    return Demand("network", wanted, {}, note="network: bytes of records and messages, not measured")


def mixing_factor(model: Model, rates: Mapping[str, Rate], asked: Requirement) -> tuple[float, Unsure | None]:
    """How many times more a mix takes than its parts by themselves, of those that were measured by themselves."""
    wanted = {
        kind: rate / rates[kind].per_s for kind, rate in asked.operations.rates().items() if not rates[kind].mixed
    }
    how = pairs_of(wanted) if len(wanted) > 1 else 0.0
    if not how:
        return 1.0, None
    words = (
        "" if model.mixing.log_factor or model.mixing.spread else "no mix was measured: operations are taken to add up"
    )
    wide = model.mixing.spread * how if not words else spread([math.log(2.0) * how])
    return math.exp(model.mixing.log_factor * how), Unsure(
        "mixing", wide, words, "your mix: make campaign NAME=ycsb SLICE=cassandra with 64 clients"
    )
