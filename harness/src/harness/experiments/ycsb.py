"""YCSB's workloads over stores: each run loads a fresh store and measures one workload after the other on it."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Experiment, Notes
from harness.experiments.little_memory import memory_bytes, memory_refusal, with_little_memory
from harness.fields import Field, Value
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores.base import DURABILITIES
from harness.stores.programs import installed
from harness.stores.registry import STORES

# The store that reads the device with each get of a value, and the workloads that do nothing else.
DEVICE_STORE = "aiodb"
DEVICE_WORKLOADS = ("workloadc", "readonly")
DEVICE = "device"
DEVICE_SECONDS = 6
DEVICE_BYTES = 256 << 20


class Ycsb(Experiment):
    """`bin/ycsb load`, and `bin/ycsb run` for each workload."""

    name = "ycsb"
    stores = tuple(STORES)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "threads": Field(int, "YCSB's client threads", least=1, most=1024),
            "workload": Field(str, "a file of workloads/", choices=client.WORKLOADS),
        }
    )
    swept = frozenset({"workload"})
    parameters = MappingProxyType(
        {
            "records": Field(int, "records that are loaded", least=100, most=1_000_000_000),
            "seconds": Field(int, "seconds for each workload at most", least=20, most=3600),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=10),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=100),
            "target_per_s": Field(int, "operations/s that are offered; 0: as many as are done", least=0, default=0),
            "durability": Field(str, "of every write", choices=DURABILITIES),
            "memory_mib": Field(
                int, "memory of the process that holds the data; 0: all that there is", least=0, default=0
            ),
            "heap_mib": Field(
                int, "heap of YCSB's own virtual machine where memory is limited", least=64, most=1 << 20, default=256
            ),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = client.METRICS
    notes = Notes(
        durability=(
            "as the parameter says, for loading and for measuring; LMDB's writes are always `sync`. Cassandra's commit "
            "log is `batch` for `sync`, and `periodic`, where a power cut may take 10 s, for `interval`"
        ),
        latency=client.LOOP,
        method=(
            client.FLATNESS,
            "A record is one row: with several fields an update reads it and writes all of it. In Cassandra each field "
            "is a column, of which an update writes one without reading. Workloads that insert are followed by a fresh "
            "table.",
            "Workload E reads records in the order of their keys; over Cassandra in the order of the keys' tokens, the "
            "only one that it has across partitions.",
            f"Dashed, where a run measured it: {DEVICE_SECONDS} s of fio in aiodb's own run, with as many random reads "
            "of 4 KiB in flight as there are client threads. A record of the default size takes one such read, unless "
            "it lies in memory.",
            "As far as the data fit the memory of the host, LMDB and RocksDB read them from the page cache; aiodb "
            "reads the device, as it does with data of any size. With `memory_mib` the process that holds the data has "
            "so much, page cache included.",
            "Workload E is given a number of operations, as YCSB scans from keys that so many would have made; the "
            "others end with their time alone.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh store has nothing to run on"
        if _durability(run) not in STORES[run.store].durabilities:
            return f"`durability`: {run.store} has no `{_durability(run)}`"
        return memory_refusal(run)

    def obstacle(self, run: Run) -> str | None:
        return STORES[run.store].limits_missing() if memory_bytes(run) else None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        asking = [installed("fio")] if _asks_device(run) else []
        workloads = map(str, run.swept["workload"])
        return [*client.programs(place, workloads), *STORES[run.store].programs(place), *asking]

    def packages(self, run: Run) -> Sequence[str]:
        return (*STORES[run.store].packages, *(("fio",) if _asks_device(run) else ()))

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return STORES[run.store].services(place, _durability(run), memory_bytes(run))

    def expected_seconds(self, run: Run) -> float:
        store, workloads = STORES[run.store], run.swept["workload"]
        measuring = len(workloads) * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
        measuring += 2 * DEVICE_SECONDS if _asks_device(run) else 0
        loading = int(run.parameters["records"]) / store.loads_per_s + client.OPENING_SECONDS
        return store.starting_seconds + measuring + len(_loads(workloads)) * loading

    def needed_bytes(self, run: Run) -> float:
        """All tables stay until the end. Of a workload that also reads, most operations write nothing."""
        loaded = len(_loads(run.swept["workload"])) * client.loaded_bytes(run.parameters)
        seconds = float(run.parameters["seconds"]) + client.OPENING_SECONDS
        parts = sum(client.WRITTEN_PARTS.get(str(workload), 0.0) for workload in run.swept["workload"])
        store = STORES[run.store]
        held = loaded + client.written_bytes(run.parameters, parts * seconds, store.writes_per_s)
        return DEVICE_BYTES + store.disk_bytes(held)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        steps = [_device(run, place)] if _asks_device(run) else []
        workloads = run.swept["workload"]
        loads = _loads(workloads)
        tables = [max(load for load in loads if load <= number) for number in range(len(workloads))]
        for point, table in zip(run.points(), tables, strict=True):
            workload = str(point["workload"])
            shared = (*_properties(run, place), f"table=records{table}")
            if workloads[table] == workload:
                limit = 600 + int(run.parameters["records"]) / 200
                read = tuple(of for of, its in zip(run.points(), tables, strict=True) if its == table)
                load = _command("load", run, place, workload, shared)
                steps.append(_limited(Step(f"load-{table}", load, limit, needed_by=read), run))
            seconds = float(run.parameters["seconds"])
            measured = (*shared, *client.measuring(place, workload, workload, seconds))
            measure = _command("run", run, place, workload, measured)
            steps.append(_limited(Step(workload, measure, 300 + 2 * seconds, (point,)), run))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.step.name == DEVICE:
            _device_reads_per_s(finished.output)
            return ()
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        row = client.measured_row(finished, point, place, float(run.parameters["seconds"]))
        if _asks_device(run) and point["workload"] in DEVICE_WORKLOADS:
            asked = (place.kept / f"{DEVICE}.out").read_text(encoding="utf-8")
            row = dataclasses.replace(row, ceiling_per_s=_device_reads_per_s(asked))
        return [row]


def _limited(step: Step, run: Run) -> Step:
    return with_little_memory(step, run) if memory_bytes(run) else step


def _asks_device(run: Run) -> bool:
    return run.store == DEVICE_STORE and any(workload in DEVICE_WORKLOADS for workload in run.swept["workload"])


def _device(run: Run, place: Place) -> Step:
    """fio with as many reads in flight as the clients have threads, on a file of its own."""
    command = (
        "fio", f"--name={DEVICE}", f"--filename={place.scratch / 'device'}", f"--size={DEVICE_BYTES}",
        "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", "--thread",
        f"--numjobs={run.levels['threads']}", "--group_reporting", "--norandommap", "--randrepeat=0", "--time_based",
        f"--runtime={DEVICE_SECONDS}", "--output-format=json",
    )  # fmt: skip
    held_against = tuple(point for point in run.points() if point["workload"] in DEVICE_WORKLOADS)
    return Step(DEVICE, command, 300, needed_by=held_against)


def _device_reads_per_s(output: str) -> float:
    """What fio says, after whatever else it says."""
    try:
        (job,) = json.loads(output[output.index("{") :])["jobs"]
        return float(job["read"]["iops"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadOutputError(f"fio has not said what the device gives: {error!r}") from error


def _loads(workloads: Sequence[Value]) -> list[int]:
    """The positions of workloads before which a table is loaded: the first, each after one that inserts, and each that
    scans: over Redis what is loaded for other workloads cannot be scanned."""
    return [
        number
        for number, workload in enumerate(workloads)
        if number == 0 or workloads[number - 1] in client.INSERTING or workload in client.SCANNING
    ]


def _properties(run: Run, place: Place) -> tuple[str, ...]:
    return (
        *STORES[run.store].properties(place, _durability(run)),
        f"recordcount={run.parameters['records']}",
        f"fieldcount={run.parameters['fields']}",
        f"fieldlength={run.parameters['field_bytes']}",
    )


def _command(phase: str, run: Run, place: Place, workload: str, properties: Sequence[str]) -> tuple[str, ...]:
    target_per_s = int(run.parameters["target_per_s"]) if phase == "run" else 0
    called = STORES[run.store].client
    return client.command(place, phase, called, workload, properties, run.levels["threads"], target_per_s)


def _durability(run: Run) -> str:
    return str(run.parameters["durability"])
