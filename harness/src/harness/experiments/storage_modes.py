"""Storage modes: what of a table memory keeps, its keys and its values, its keys, or neither. Each is measured by
itself under several numbers of clients, or all come one after the other on the live table, while clients ask."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Experiment, Notes
from harness.experiments.little_memory import memory_bytes, memory_refusal, with_little_memory
from harness.fields import Field, Value
from harness.flatness import NOT_FLAT, WINDOW_SECONDS, steady
from harness.node_limits import NodeLimits
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores import cassandra
from harness.stores.base import DURABILITIES
from harness.stores.cassandra_table import AiodbLsmTable
from harness.stores.embedded import AiodbLsm
from harness.stores.registry import STORES
from harness.ycsb_output import Status, mean_latencies, rates, read_status

# Keys and values, as the store has them, in the order in which they are measured by themselves: what comes to memory
# under one of them stays there under the next, which would have it there as well.
MODES = ("disk/disk", "auto/auto", "memory/disk", "memory/memory")
# The same once more behind others, where they come one after the other.
AGAIN = " again"
LEVELS = (*MODES, *(f"{modes}{AGAIN}" for modes in MODES))

WORKLOADS = ("readonly", "readheavy", "workloadb", "workloadc", "workloada", "writeheavy")
# `user` and a number of so many digits, as the studies' keys have 25 bytes.
KEY_DIGITS = 21
KEY_BYTES = len("user") + KEY_DIGITS
LOADING_THREADS = 32
# What a virtual machine has beside its heap, and a store beside its budget, at least.
BESIDE_MIB = 128
# After a change, the time in which clients may notice it.
AFTER_SECONDS = 5.0

_TO = re.compile(r"^change: to (\S+)$")
_IS = re.compile(r"^change: is (\S+) after ([\d.]+) ms$")
_FOUND = re.compile(r"^change: in memory(?: keys ([\d.]+))?(?: values ([\d.]+))?$")


@dataclass(frozen=True)
class Stage:
    """The time from one change to the next, in seconds since the run began."""

    # When the change that begins it was asked for, and when it was made.
    asked_s: float
    began_s: float
    ended_s: float
    # How long that took.
    change_ms: float
    # What of the table was in memory at its end, as far as that is known: `keys_in_memory`, `values_in_memory`.
    found: Mapping[str, float]


class StorageModes(Experiment):
    """A store for each size of values and of the data; all modes and numbers of clients are measured on it."""

    name = "storage-modes"
    stores = (AiodbLsm.name, AiodbLsmTable.name)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "modes": Field(str, "keys and values of the table: keys/values", choices=LEVELS),
            "field_bytes": Field(int, "bytes of a value", least=1, most=1 << 20),
            "memory_times": Field(float, "keys and values in all, times the store's memory", least=0.001, most=1000),
            "threads": Field(int, "YCSB's client threads", least=1, most=1024),
        }
    )
    swept = frozenset({"modes", "threads"})
    parameters = MappingProxyType(
        {
            "workload": Field(str, "a file of workloads/ that inserts nothing", choices=WORKLOADS, default="readonly"),
            "store_mib": Field(int, "the store's budget of memory", least=32, most=1 << 20),
            "memory_mib": Field(
                int, "memory of the process that holds the data; 0: all that there is", least=0, default=0
            ),
            "heap_mib": Field(
                int, "heap of YCSB's own virtual machine where memory is limited", least=64, most=1 << 20, default=128
            ),
            "seconds": Field(int, "seconds for each point at most", least=20, most=3600, default=30),
            "stage_seconds": Field(
                int,
                "how long each of the modes stays, one after the other on the live table; 0: each by itself",
                least=0,
                most=3600,
                default=0,
            ),
            "warm_up_seconds": Field(int, "of the workload before, once", least=0, most=3600, default=0),
            "durability": Field(str, "of every write", choices=DURABILITIES, default="interval"),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        *client.METRICS,
        Metric("keys_in_memory", "keys in memory at the end, part", "1"),
        Metric("values_in_memory", "values in memory at the end, part", "1"),
        Metric("change_us", "until the change in flight was made", "µs"),
        Metric("after_per_s", f"throughput in the {AFTER_SECONDS:g} s from when it was asked for", "1/s"),
    )
    notes = Notes(
        durability="as the parameter says; Cassandra's commit log is `batch` for `sync`, and `periodic` for `interval`",
        latency=client.LOOP.partition(";")[0],
        method=(
            client.FLATNESS,
            "The store's budget of memory holds its caches and memtables. How often the data are as large counts keys "
            f"of {KEY_BYTES} bytes and values, and nothing that the store keeps beside them.",
            "The process that holds the data has its control group, page cache included, so that the system's memory "
            "does not stand in for the store's.",
            "Modes are changed within the client's process (`Table.setModes`), over Cassandra by ALTER TABLE to a "
            "memtable configuration that differs in them. A point of its own begins with that, before its first "
            "operation; what is wanted in memory comes there in the background while it is measured.",
            "Modes say what comes to memory. What is there already stays until others need the room: after a change in "
            "flight a table may have more in memory than one that was opened with these modes. Keys that were written "
            "lately are in memory in all modes. Modes by themselves are therefore measured from those on that bring "
            "least to memory.",
            "Parts in memory are the store's own estimates, when the modes ended. Over Cassandra nothing is said: a "
            "node's JMX has them.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh store has nothing to run on"
        if reason := _modes_refusal(run):
            return reason
        if (durability := _durability(run)) not in STORES[run.store].durabilities:
            return f"`durability`: {run.store} has no `{durability}`"
        least_mib = int(run.parameters["store_mib"]) + int(run.parameters["heap_mib"]) + BESIDE_MIB
        if STORES[run.store].in_client and 0 < int(run.parameters["memory_mib"]) < least_mib:
            return f"`memory_mib` must be {least_mib} at least: `store_mib`, `heap_mib` and {BESIDE_MIB}"
        return memory_refusal(run)

    def obstacle(self, run: Run) -> str | None:
        return STORES[run.store].limits_missing() if memory_bytes(run) else None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [*client.programs(place, (_workload(run),)), *STORES[run.store].programs(place)]

    def packages(self, run: Run) -> Sequence[str]:
        return STORES[run.store].packages

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        if STORES[run.store].in_client:
            return ()
        told = {
            "PARAMETERS": f"{cassandra.SORTED_RUNS}\nmemory: {run.parameters['store_mib']}MiB",
            "MEMTABLES": "\n".join(map(_configuration, MODES)),
        }
        limits = NodeLimits(memory_bytes=memory_bytes(run))
        return (cassandra.cluster(place, 1, batch=_durability(run) == "sync", limits=limits, more=told),)

    def expected_seconds(self, run: Run) -> float:
        store, threads = STORES[run.store], len(run.swept["threads"])
        if stage := int(run.parameters["stage_seconds"]):
            measuring = float(threads * (len(run.swept["modes"]) * stage + client.OPENING_SECONDS))
        else:
            points = threads * len(run.swept["modes"])
            measuring = points * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
        if warm_s := float(run.parameters["warm_up_seconds"]):
            measuring += warm_s + client.OPENING_SECONDS
        # Short records are loaded faster than those of a kilobyte.
        times = 3 if store.in_client and int(run.levels["field_bytes"]) < 100 else 1
        return store.starting_seconds + records(run) / (times * store.loads_per_s) + client.OPENING_SECONDS + measuring

    def needed_bytes(self, run: Run) -> float:
        store, given = STORES[run.store], _record(run)
        seconds = self.expected_seconds(run) * client.WRITTEN_PARTS.get(_workload(run), 0.0)
        return store.disk_bytes(
            client.loaded_bytes({**given, "records": records(run)})
            + client.written_bytes(given, seconds, store.writes_per_s)
        )

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        properties, workload = _properties(run, place), _workload(run)
        called = STORES[run.store].client
        load = client.command(place, "load", called, workload, properties, LOADING_THREADS)
        steps = [Step("load", load, 600 + records(run) / 500)]
        if warm_s := int(run.parameters["warm_up_seconds"]):
            _, schedule, *_ = _measured(run)[0]
            first, *_ = schedule.split(",")
            warm = (*properties, first, *client.measuring(place, "warm-up", workload, warm_s))
            most = max(int(threads) for threads in run.swept["threads"])
            steps.append(Step("warm-up", client.command(place, "run", called, workload, warm, most), 300 + 2 * warm_s))
        for name, schedule, seconds, points in _measured(run):
            of = (*properties, schedule, *client.measuring(place, name, workload, seconds))
            command = client.command(place, "run", called, workload, of, points[0]["threads"])
            steps.append(Step(name, command, 300 + 2 * seconds, points))
        return [with_little_memory(step, run) if memory_bytes(run) else step for step in steps]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        points = finished.step.points
        if not points:
            return ()
        stages = _stages(finished)
        if len(stages) != len(points):
            raise BadOutputError(f"the log has {len(stages)} changes of modes, and {len(points)} were asked for")
        if not int(run.parameters["stage_seconds"]):
            row = client.measured_row(finished, points[0], place, float(run.parameters["seconds"]))
            return [dataclasses.replace(row, values={**row.values, **stages[0].found})]
        status = read_status(finished.log)
        if len(status) < 2:
            raise BadOutputError("the client said nothing while modes were changed")
        parts = [_part(point, stage, status, finished, place) for point, stage in zip(points, stages, strict=True)]
        # The modes at the beginning are set before the first operation.
        noticed = [{}, *(_noticed(stage, status) for stage in stages[1:])]
        return [
            dataclasses.replace(row, values={**row.values, **values})
            for row, values in zip(parts, noticed, strict=True)
            if row is not None
        ]


def records(run: Run) -> int:
    """As many as make the data so large."""
    held = float(run.levels["memory_times"]) * (int(run.parameters["store_mib"]) << 20)
    return max(100, round(held / (KEY_BYTES + int(run.levels["field_bytes"]))))


def plain(level: Value) -> str:
    """The modes of a level, whether they come for the first time or again."""
    return str(level).removesuffix(AGAIN)


def _modes_refusal(run: Run) -> str | None:
    levels = [str(level) for level in run.swept["modes"]]
    stage = int(run.parameters["stage_seconds"])
    if not stage:
        return "`modes`: nothing comes again without `stage_seconds`" if any(map(_again, levels)) else None
    if stage < 2 * WINDOW_SECONDS:
        return f"`stage_seconds` must be {2 * WINDOW_SECONDS:g} at least: two windows that could be flat"
    for number, level in enumerate(levels):
        if _again(level) and plain(level) not in levels[:number]:
            return f"`modes`: {level!r} comes without {plain(level)!r} before it"
    return None


def _again(level: str) -> bool:
    return level.endswith(AGAIN)


def _configuration(modes: str) -> str:
    """A memtable configuration with these modes, in the store of the memtable `aiodb`."""
    keys, values = modes.split("/")
    return (
        f"    {_memtable(modes)}:\n      inherits: aiodb\n      parameters:\n"
        f"        keys: {keys}\n        values: {values}"
    )


def _memtable(modes: str) -> str:
    return f"aiodb_{modes.replace('/', '_')}"


def _measured(run: Run) -> list[tuple[str, str, int, tuple[Mapping[str, Value], ...]]]:
    """The steps that measure: name, schedule of the changes, seconds, points."""
    stage, points = int(run.parameters["stage_seconds"]), list(run.points())
    if not stage:
        points.sort(key=lambda point: MODES.index(str(point["modes"])))
        return [
            (
                f"{str(point['modes']).replace('/', '-')}-{point['threads']}",
                _schedule(run, [point["modes"]], 0),
                int(run.parameters["seconds"]),
                (point,),
            )
            for point in points
        ]
    return [
        (
            f"switch-{threads}",
            _schedule(run, run.swept["modes"], stage),
            stage * len(run.swept["modes"]),
            tuple(point for point in points if point["threads"] == threads),
        )
        for threads in run.swept["threads"]
    ]


def _schedule(run: Run, modes: Sequence[Value], stage: int) -> str:
    """The property that has the client change the modes at their seconds."""
    embedded = STORES[run.store].in_client
    named = [plain(level) if embedded else _memtable(plain(level)) for level in modes]
    changes = ",".join(f"{number * stage}:{name}" for number, name in enumerate(named))
    return f"{'modes_at' if embedded else 'cassandra.memtable_at'}={changes}"


def _properties(run: Run, place: Place) -> tuple[str, ...]:
    store = STORES[run.store]
    own = (f"store.memory_bytes={int(run.parameters['store_mib']) << 20}",) if store.in_client else ()
    return (
        *store.properties(place, _durability(run)),
        *own,
        f"recordcount={records(run)}",
        f"zeropadding={KEY_DIGITS}",
        "fieldcount=1",
        f"fieldlength={run.levels['field_bytes']}",
    )


def _record(run: Run) -> dict[str, Value]:
    return {"fields": 1, "field_bytes": run.levels["field_bytes"]}


def _workload(run: Run) -> str:
    return str(run.parameters["workload"])


def _durability(run: Run) -> str:
    return str(run.parameters["durability"])


def _stages(finished: Finished) -> list[Stage]:
    """The times between changes, by what the step's log says."""
    asked: list[float] = []
    made: list[tuple[float, float]] = []
    found: dict[int, Mapping[str, float]] = {}
    for second, line in finished.log:
        if _TO.match(line):
            asked.append(second)
        elif match := _IS.match(line):
            made.append((second, float(match[2])))
        elif match := _FOUND.match(line):
            shares = {"keys_in_memory": match[1], "values_in_memory": match[2]}
            found[len(made) - 1] = {name: float(share) for name, share in shares.items() if share is not None}
    ends = [*asked[1:], finished.ended_s]
    return [
        Stage(asked_s, began_s, ended_s, took_ms, found.get(number, {}))
        for number, (asked_s, (began_s, took_ms), ended_s) in enumerate(zip(asked, made, ends, strict=False))
    ]


def _part(
    point: Mapping[str, Value], stage: Stage, status: Sequence[Status], finished: Finished, place: Place
) -> Row | None:
    """What was measured with these modes; None where the time was too short to say."""
    within = [of for of in status if stage.began_s <= of.t_s <= stage.ended_s]
    found = steady(within)
    if found is None or found.to_s - found.from_s < WINDOW_SECONDS:
        return None
    since = status[0].t_s - status[0].at
    values, curves = client.latencies_of(place, finished.step.name, found.from_s, found.to_s)
    values |= {"operations_per_s": found.rate_per_s, "began_s": round(stage.began_s, 3), **stage.found}
    # From the last line before the change, so that the curves of all stages make one without a gap.
    earlier = [of for of in status if of.t_s < stage.asked_s]
    whole = [*earlier[-1:], *(of for of in status if stage.asked_s <= of.t_s <= stage.ended_s)]
    window = (round(found.from_s + since, 3), round(found.to_s + since, 3))
    marks = () if found.flat else (f"{NOT_FLAT} within {stage.ended_s - stage.began_s:.0f} s",)
    return Row(point, values, window, None, marks, tuple(rates(whole)), tuple(mean_latencies(whole)), curves)


def _noticed(stage: Stage, status: Sequence[Status]) -> dict[str, float]:
    """How long a change in flight took, and the throughput of the first seconds from when it was asked for."""
    values = {"change_us": 1000 * stage.change_ms}
    after = [of for of in status if stage.asked_s <= of.t_s <= stage.asked_s + AFTER_SECONDS + 1]
    if len(after) > 1:
        values["after_per_s"] = (after[-1].operations - after[0].operations) / (after[-1].at - after[0].at)
    return values
