"""The long run of okuyama and Riak: inserts by many clients until memory is used up, and far beyond. The kernel limits
the process that holds the data; one that it kills is drawn as dead where it died."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Experiment, Notes
from harness.experiments.little_memory import memory_bytes, memory_refusal, with_little_memory
from harness.fields import Field, Value
from harness.limits import KILLED_FOR_MEMORY
from harness.rows import DIED, Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores.base import DURABILITIES
from harness.stores.registry import STORES
from harness.ycsb_output import Status, longest_us, mean_latencies, rates, read_status

# Points of the published plots are averages over so many seconds.
POINT_SECONDS = 10
# A store that dies has a point of what it did since the last one, if that took as long as this.
LEAST_POINT_SECONDS = 1.0
WORKLOAD = "writeonly"
# More than any store takes in the time given.
RECORDS = 1_000_000_000
# How a virtual machine ends that finds no more room in its heap, as it is told to.
OUT_OF_HEAP = 3


class MemoryFull(Experiment):
    """One long insertion into each store."""

    name = "memory-full"
    stores = tuple(STORES)
    phases = ("load",)
    axes = MappingProxyType({"threads": Field(int, "YCSB's client threads", least=1, most=1024)})
    parameters = MappingProxyType(
        {
            "memory_mib": Field(int, "memory of the process that holds the data", least=128, most=1 << 20),
            "heap_mib": Field(int, "heap of YCSB's own virtual machine", least=32, most=1 << 20),
            "seconds": Field(int, "how long is inserted", least=20, most=1_000_000),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=1),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=1000),
            "durability": Field(str, "of every write", choices=DURABILITIES),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("operations_per_s", "inserts, all of the time", "1/s", main=True),
        Metric("first_per_s", f"of the first {POINT_SECONDS} s", "1/s"),
        Metric("last_per_s", f"of the last {POINT_SECONDS} s", "1/s"),
        Metric("least_per_s", f"of the worst {POINT_SECONDS} s", "1/s"),
        Metric("longest_s", "longest insert", "s"),
        Metric("records", "records inserted", ""),
        Metric("memory_times", "their bytes, by the memory", ""),
        Metric("alive_s", "seconds until the end", "s"),
    )
    notes = Notes(
        durability="as the parameter says; LMDB's writes are always `sync`",
        latency="a closed loop, mean over each point: each thread waits for its answer before it asks again",
        method=(
            f"Each point is {POINT_SECONDS} s. The control group of the process that holds the data is limited: for a "
            "store within YCSB's process that is both together, heap included, for Redis and for a node of Cassandra "
            "the server alone. Page cache counts, and is what the kernel takes back first.",
            "A store that the kernel kills, or whose virtual machine finds no more room, is a result: a cross where it "
            "died. A store whose operations fail has no result.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        shared = STORES[run.store].in_client
        if shared and int(run.parameters["heap_mib"]) > int(run.parameters["memory_mib"]) // 2:
            return "`heap_mib` leaves less than half of the memory to the store"
        if (durability := str(run.parameters["durability"])) not in STORES[run.store].durabilities:
            return f"`durability`: {run.store} has no `{durability}`"
        return memory_refusal(run)

    def obstacle(self, run: Run) -> str | None:
        return STORES[run.store].limits_missing()

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [*client.programs(place, (WORKLOAD,)), *STORES[run.store].programs(place)]

    def packages(self, run: Run) -> Sequence[str]:
        return STORES[run.store].packages

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return STORES[run.store].services(place, str(run.parameters["durability"]), memory_bytes(run))

    def expected_seconds(self, run: Run) -> float:
        return STORES[run.store].starting_seconds + float(run.parameters["seconds"]) + client.OPENING_SECONDS

    def needed_bytes(self, run: Run) -> float:
        store = STORES[run.store]
        written = client.written_bytes(run.parameters, float(run.parameters["seconds"]), store.writes_per_s)
        return store.disk_bytes(written)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        properties = (
            *STORES[run.store].properties(place, str(run.parameters["durability"])),
            f"recordcount={RECORDS}",
            f"maxexecutiontime={run.parameters['seconds']}",
            f"fieldcount={run.parameters['fields']}",
            f"fieldlength={run.parameters['field_bytes']}",
            *client.histograms(place, "insert"),
        )
        threads = run.levels["threads"]
        insert = client.command(place, "load", STORES[run.store].client, WORKLOAD, properties, threads)
        seconds = 120 + 2 * float(run.parameters["seconds"])
        step = Step("insert", insert, seconds, tuple(run.points()), may_die=True)
        return [with_little_memory(step, run)]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.death is None:
            client.check(finished)
        elif not _died_of_memory(run, finished.death, place):
            raise BadOutputError(finished.death)
        status = read_status(finished.log)
        if finished.death is None:
            status = _asked(status, float(run.parameters["seconds"]))
        coarse = _coarse(status, LEAST_POINT_SECONDS if finished.death else POINT_SECONDS / 2)
        points = rates(coarse)
        (point,) = finished.step.points
        if not points:
            if finished.death is None:
                raise BadOutputError(f"operations for less than {POINT_SECONDS / 2:g} s")
            return [_early_death(finished, point)]
        marks = [_death(finished, status)] if finished.death else []
        window = (status[0].t_s, status[-1].t_s)
        values = _values(run, status, points)
        if (longest := longest_us(finished.log)) is not None:
            values["longest_s"] = longest / 1e6
        return [Row(point, values, window, None, tuple(marks), tuple(points), tuple(mean_latencies(coarse)))]


def _died_of_memory(run: Run, death: str, place: Place) -> bool:
    told = KILLED_FOR_MEMORY in death or death.endswith(f"exit code {OUT_OF_HEAP}")
    return told or STORES[run.store].ran_out_of_heap(place)


def _asked(status: Sequence[Status], seconds: float) -> list[Status]:
    """Of status lines those of the time in which all threads were inserting: behind its end some wait for their last
    answer, and ask no more."""
    return [of for of in status if of.at - status[0].at < seconds + 1]


def _coarse(status: Sequence[Status], least_s: float) -> list[Status]:
    """Of status lines those that end a point, each with the mean latency of all its operations. What is left at the end
    is a point if it is half as long as the others; if it is the only one, if it took so many seconds."""
    coarse = list(status[:1])
    waited_us = 0.0
    for before, now in itertools.pairwise(status):
        waited_us += (now.latency_us or 0.0) * (now.operations - before.operations)
        seconds = now.at - coarse[-1].at
        least = POINT_SECONDS / 2 if len(coarse) > 1 else least_s
        # A status line that is early by a little ends its point all the same.
        if seconds >= POINT_SECONDS - 0.5 or (now is status[-1] and seconds >= least):
            done = now.operations - coarse[-1].operations
            coarse.append(dataclasses.replace(now, latency_us=waited_us / done if done else None))
            waited_us = 0.0
    return coarse


def _values(run: Run, status: Sequence[Status], points: Sequence[tuple[float, float]]) -> dict[str, float]:
    seconds = status[-1].at - status[0].at
    records = float(status[-1].operations)
    record_bytes = int(run.parameters["fields"]) * int(run.parameters["field_bytes"])
    return {
        "operations_per_s": records / seconds,
        "first_per_s": points[0][1],
        "last_per_s": points[-1][1],
        "least_per_s": min(rate for _, rate in points),
        "records": records,
        "memory_times": records * record_bytes / memory_bytes(run),
        "alive_s": seconds,
    }


def _death(finished: Finished, status: Sequence[Status]) -> str:
    seconds, records = status[-1].at - status[0].at, status[-1].operations
    return f"{DIED}{seconds:.0f} s after the first insert, with {records:,} records at least: {finished.death}"


def _early_death(finished: Finished, point: Mapping[str, Value]) -> Row:
    """Of a store that died before it had said anything, it is known when."""
    seconds = finished.ended_s - finished.began_s
    mark = f"{DIED}within {seconds:.0f} s, before it had done anything for a second: {finished.death}"
    return Row(point, {"alive_s": seconds}, (finished.began_s, finished.ended_s), marks=(mark,))
