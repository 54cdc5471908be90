"""Which resource kept a point from going faster, and what shows it. Says that none is known rather than guess."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.node_limits import NodeLimits
from harness.node_usage import NodeSample
from harness.rows import Row
from harness.sampling import HostSample, ProcessSample, Samples

# At this part of what the device gave in the same run, the device is what holds a store back.
CEILING_FRACTION = 0.85
# The resource where none was saturated.
NOTHING = "none"
# A node counts as held back by a limit of its disk when it does this part of what it may.
LIMIT_FRACTION = 0.90
# A processor counts as used up with no more idle time than this.
IDLE_FRACTION = 0.10
# A thread counts as used up when it computes for this part of the time.
THREAD_FRACTION = 0.90
# A disk of unknown ceiling counts as used up when it is busy for this part of the time, with a queue.
BUSY_FRACTION = 0.95
# Time stolen by other guests of the host, above which a reader must know of it.
STEAL_FRACTION = 0.05


@dataclass(frozen=True)
class Saturation:
    """The verdict on one point."""

    resource: str
    evidence: str


def saturation(row: Row, rate: float, samples: Samples, limits: NodeLimits) -> Saturation:
    """The verdict on a row that did `rate` operations/s; samples outside its window are not looked at."""
    began, ended = row.window_s
    within = [sample for sample in samples.host if began < sample.t_s <= ended + 1]
    nodes = [sample for sample in samples.nodes if began < sample.t_s <= ended + 1]
    verdict = (
        _by_ceiling(row, rate)
        or _by_node_limit(nodes, limits)
        or _by_thread(row, rate)
        or _by_processor(within)
        or _by_busy_disk(within)
    )
    if verdict is None:
        verdict = Saturation(NOTHING, _no_evidence(row, within, samples.processes))
    steal = _mean(within, "cpu_steal")
    if steal is not None and steal >= STEAL_FRACTION:
        return Saturation(
            verdict.resource, f"{verdict.evidence}; {steal:.0%} of the processor was taken by other guests"
        )
    return verdict


def _by_ceiling(row: Row, rate: float) -> Saturation | None:
    if row.ceiling_per_s is None or rate < CEILING_FRACTION * row.ceiling_per_s:
        return None
    part = rate / row.ceiling_per_s
    return Saturation("disk", f"{rate:,.0f}/s are {part:.2f} of the {row.ceiling_per_s:,.0f}/s that the device gave so")


def _by_node_limit(samples: Sequence[NodeSample], limits: NodeLimits) -> Saturation | None:
    """Whether nodes did what their disks may do; which did the most of it."""
    kinds = (
        ("reads_per_s", limits.reads_per_s, "reads/s"),
        ("writes_per_s", limits.writes_per_s, "writes/s"),
        ("read_bytes_per_s", limits.bytes_per_s, "bytes/s read"),
        ("written_bytes_per_s", limits.bytes_per_s, "bytes/s written"),
    )
    # Groups are there before their nodes.
    nodes = sorted({sample.node for sample in samples if sample.reads_per_s or sample.writes_per_s})
    for name, limit, unit in kinds if nodes else ():
        did = {
            node: statistics.fmean(getattr(sample, name) for sample in samples if sample.node == node) for node in nodes
        }
        most = max(nodes, key=lambda node: did[node])
        if limit and did[most] >= LIMIT_FRACTION * limit:
            held = sum(1 for of in did.values() if of >= LIMIT_FRACTION * limit)
            return Saturation(
                "limits of nodes' disks",
                f"node {most} did {did[most]:,.0f} of the {limit:,} {unit} that it may; "
                f"{held} of {len(nodes)} nodes were at that limit",
            )
    return None


def _by_thread(row: Row, rate: float) -> Saturation | None:
    cost_us = row.values.get("cpu_us_per_get")
    threads = row.levels.get("threads")
    if cost_us is None or not isinstance(threads, int):
        return None
    busy = cost_us * rate / 1e6 / threads
    if busy < THREAD_FRACTION:
        return None
    return Saturation(
        "processor", f"{cost_us:.1f} µs for each get keep a thread computing {min(busy, 1):.0%} of the time"
    )


def _by_processor(host: Sequence[HostSample]) -> Saturation | None:
    idle = _mean(host, "cpu_idle", "cpu_iowait")
    if idle is None or idle > IDLE_FRACTION:
        return None
    return Saturation("processor", f"the cores of the host were idle for {idle:.0%} of the time")


def _by_busy_disk(host: Sequence[HostSample]) -> Saturation | None:
    busy, queue = _mean(host, "disk_busy"), _mean(host, "disk_queue")
    if busy is None or queue is None or busy < BUSY_FRACTION or queue < 1:
        return None
    return Saturation(
        "disk", f"busy for {busy:.0%} of the time with {queue:.0f} requests at once; its most is not known"
    )


def _no_evidence(row: Row, host: Sequence[HostSample], processes: Sequence[ProcessSample]) -> str:
    if not host:
        return "the point was over between two samples"
    idle, busy = _mean(host, "cpu_idle", "cpu_iowait"), _mean(host, "disk_busy")
    began, ended = row.window_s
    cores = [sample.cpu_cores for sample in processes if began < sample.t_s <= ended + 1]
    most = f", the busiest process took {max(cores):.2f} cores" if cores else ""
    return f"cores idle for {idle:.0%}, the machine's disk busy for {busy:.0%} of the time{most}"


def _mean(host: Sequence[HostSample], *names: str) -> float | None:
    """The mean of the sum of some columns; None without samples."""
    if not host:
        return None
    return statistics.fmean(sum(getattr(sample, name) for name in names) for sample in host)
