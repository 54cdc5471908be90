"""Cells over a cluster of real Cassandra nodes: how many operations per second, how late, for each combination of
engine, replication factor, consistency level, entry node and number of clients."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import psutil

from harness.experiments import client
from harness.experiments.base import Experiment, Finished, Metric, Notes, Place, Row, Service, Step
from harness.experiments.cassandra_figures import figures_of
from harness.experiments.levels import LEVELS, replicas
from harness.fields import Field, Value
from harness.flatness import steady
from harness.node_limits import NodeLimits
from harness.plan import Run
from harness.processes import read_log
from harness.report.figures import Figure, HeatMap
from harness.results import Results
from harness.sampling import HostSample
from harness.stores import cassandra
from harness.ycsb_output import read_status

# Of the host's memory, what nodes may take.
MEMORY_PART = 0.7
LOADING_THREADS = 16
# Below this a node does not start.
LEAST_NODE_MIB = 900
# Nodes on one machine disturb each other where its processor has less idle time than this.
IDLE_FRACTION = 0.20
# How names begin of what is measured in an open loop.
OPEN = "open_"
SHARED = "shared CPU: shape only"
# Loading, on a cluster that has not warmed up.
RECORDS_PER_S = 3_000


def _limit(what: str) -> Field:
    return Field(int, f"{what}, for each node; 0: no limit", least=0, default=0)


class Cassandra(Experiment):
    """One cluster for each number of nodes and repetition; a keyspace for each replication factor, and in it for each
    engine a table to read and one to write, which is emptied before each cell."""

    name = "cassandra"
    stores = ("cassandra",)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "nodes": Field(int, "nodes of the cluster", least=1, most=20),
            "replication": Field(int, "replicas of each record", least=1, most=20),
            "engine": Field(str, "what holds the table", choices=tuple(cassandra.ENGINES)),
            "workload": Field(str, "a file of workloads/", choices=client.WORKLOADS),
            "level": Field(str, "consistency level, the same for reads and writes", choices=LEVELS),
            "entry": Field(str, "which node is asked first", choices=("token", "spread", "one")),
            "threads": Field(int, "YCSB's client threads", least=1, most=1024),
        }
    )
    swept = frozenset({"replication", "engine", "workload", "level", "entry", "threads"})
    parameters = MappingProxyType(
        {
            "records": Field(int, "records that are loaded into a table to be read", least=100, most=1_000_000_000),
            "seconds": Field(int, "seconds for each cell at most", least=20, most=3600),
            "passes": Field(int, "how often each cell is measured within a cluster", least=1, most=20, default=1),
            "warm_up_seconds": Field(int, "seconds of each workload before the first cell", most=3600, default=20),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=10),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=100),
            "commit_log": Field(str, "commitlog_sync", choices=("periodic", "batch"), default="periodic"),
            "open_loop_part": Field(
                float,
                "of the weakest cell's rate, offered to every cell for its latency; 0: no open loop",
                least=0,
                most=0.9,
                default=0.0,
            ),
            "node_reads_per_s": _limit("reads of the disk per second"),
            "node_writes_per_s": _limit("writes and flushes of the disk per second"),
            "node_bytes_per_s": _limit("bytes read, and written, per second"),
            "node_memory_mib": _limit("memory, page cache included"),
            "beside": Field(
                str, "which published figures are drawn", choices=("none", "disk", "memory"), default="none"
            ),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        *client.METRICS,
        Metric(f"{OPEN}per_s", "open loop: throughput", "1/s"),
        *(
            Metric(f"{OPEN}{kind}_{value}_us", f"open loop: {kind}, {name}", "µs")
            for kind in ("read", "insert")
            for value, name in (("p50", "median"), ("p99", "99th percentile"))
        ),
    )
    notes = Notes(
        durability=(
            "commit log `batch`: acknowledged means on the device of every node that the level asks for, with aiodb "
            "`sync`; `periodic`: a power cut may take 10 s, with aiodb `interval`"
        ),
        latency=(
            "a closed loop: each thread waits for its answer before it asks again. Values named `open loop`: at a rate "
            "that every cell of a workload can do, from the moment at which each operation should have begun"
        ),
        method=(
            client.FLATNESS,
            "All engines are tables of one cluster, so that a comparison shares its nodes, its warmth and its minute. "
            "A table that is written is emptied (TRUNCATE) before each cell; tables that are read are loaded once, at "
            "level ALL. Cells of one pass come one after the other, then all again.",
            "Nodes share the processor with each other and with the client. A point of several nodes during which it "
            f"was idle for less than {IDLE_FRACTION:.0%} is marked for it: it shows a shape, and not what nodes on "
            "machines of their own do.",
            "Where the parameters limit nodes, each is a control group of its own. Writes that the kernel does later "
            "by itself, as those of a periodic commit log, are not limited: it does not know whose they are.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        nodes = int(run.levels["nodes"])
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh cluster has nothing to run on"
        if nodes * cassandra.NODE_BYTES > MEMORY_PART * psutil.virtual_memory().total:
            return (
                f"`nodes`: {nodes} need {nodes * cassandra.NODE_BYTES >> 20} MiB, more than this machine has for them"
            )
        if 0 < int(run.parameters["node_memory_mib"]) < LEAST_NODE_MIB:
            return f"`node_memory_mib`: a node does not start in less than {LEAST_NODE_MIB} MiB"
        for workload in client.READING_TOO:
            if workload in run.swept["workload"]:
                return f"`workload`: {workload} reads, and a table that is inserted into is emptied before each cell"
        for replication in map(int, run.swept["replication"]):
            if replication > nodes:
                return f"`replication`: {replication} replicas need as many nodes, and there are {nodes}"
            for level in map(str, run.swept["level"]):
                if replicas(level, replication) > replication:
                    return f"`level`: {level} asks for more replicas than the {replication} that there are"
        return None

    def obstacle(self, run: Run) -> str | None:
        return _limits(run).missing()

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [client.launcher(place), client.jar(place), cassandra.keeper(place), cassandra.plugin(place)]

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        batch = run.parameters["commit_log"] == "batch"
        return (cassandra.cluster(place, int(run.levels["nodes"]), batch, limits=_limits(run)),)

    def expected_seconds(self, run: Run) -> float:
        cells = len(list(run.points())) * int(run.parameters["passes"])
        measuring = cells * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
        tables = len(run.swept["replication"]) * len(run.swept["engine"])
        loading = tables * int(run.parameters["records"]) / RECORDS_PER_S if _reads(run) else 0.0
        warming = tables * len(run.swept["workload"]) * float(run.parameters["warm_up_seconds"])
        starting = cassandra.FIRST_NODE_SECONDS + cassandra.NODE_SECONDS * int(run.levels["nodes"])
        return starting + loading + warming + measuring

    def steps(self, run: Run, place: Place) -> Iterator[Step]:
        yield from _preparation(run, place)
        limit = limiting(place, int(run.levels["nodes"]), _limits(run))
        for passed in range(1, int(run.parameters["passes"]) + 1):
            for number, point in enumerate(run.points(), 1):
                seconds = float(run.parameters["seconds"])
                cell = _cell(f"pass-{passed}-cell-{number}", run, place, point, seconds, (point,))
                yield dataclasses.replace(cell, prepare=limit)
        if float(run.parameters["open_loop_part"]):
            yield from _open_cells(run, place)

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        is_open = finished.step.name.startswith(OPEN)
        row = client.measured_row(finished, point, place, float(run.parameters["seconds"]), is_open)
        if not is_open:
            return [row]
        values = {f"{OPEN}{name}": value for name, value in row.values.items() if name != "operations_per_s"}
        values[f"{OPEN}per_s"] = row.values["operations_per_s"]
        return [dataclasses.replace(row, values=values, percentiles_us={})]

    def marks(self, run: Run, row: Row, host: Sequence[HostSample]) -> Sequence[str]:
        return () if int(run.levels["nodes"]) == 1 or idle_enough(row, host) else (SHARED,)

    def figures(self, results: Results) -> Sequence[Figure | HeatMap]:
        return figures_of(results)


def idle_enough(row: Row, host: Sequence[HostSample]) -> bool:
    """Whether the nodes left so much of the processor unused that none had to wait for another."""
    began, ended = row.window_s
    idle = [of.cpu_idle + of.cpu_iowait for of in host if began < of.t_s <= ended + 1]
    return bool(idle) and statistics.fmean(idle) >= IDLE_FRACTION


def limiting(place: Place, nodes: int, limits: NodeLimits) -> Callable[[], None]:
    """What limits the disks of so many nodes; nothing where nothing is to be limited. Before it the nodes are as fast
    as the machine: making a table would take them longer than any client waits."""
    groups = cassandra.node_groups(place, nodes, limits)
    return groups.limit_disks if groups else lambda: None


def _limits(run: Run) -> NodeLimits:
    reads, writes, size, memory = (
        int(run.parameters[f"node_{name}"]) for name in ("reads_per_s", "writes_per_s", "bytes_per_s", "memory_mib")
    )
    return NodeLimits(reads, writes, size, memory << 20)


def _preparation(run: Run, place: Place) -> Iterator[Step]:
    """Loads what is read, and lets every table and workload warm up."""
    first = next(run.points())
    for replication in run.swept["replication"]:
        for engine in run.swept["engine"]:
            point = {**first, "replication": replication, "engine": engine, "level": "ALL", "entry": "token"}
            if workload := next((of for of in run.swept["workload"] if of not in client.INSERTING), None):
                name = f"load-{engine}-{replication}"
                properties = _properties(run, {**point, "workload": workload})
                loading = client.command(place, "load", "cql", str(workload), properties, LOADING_THREADS)
                yield Step(name, loading, 600 + int(run.parameters["records"]) / 100)
            for workload in run.swept["workload"] if int(run.parameters["warm_up_seconds"]) else ():
                name = f"warm-up-{engine}-{replication}-{workload}"
                warmed = {**point, "workload": workload, "threads": max(map(int, run.swept["threads"]))}
                yield _cell(name, run, place, warmed, float(run.parameters["warm_up_seconds"]), ())


def _open_cells(run: Run, place: Place) -> Iterator[Step]:
    """Every cell again, at a rate that all of its workload have shown they can do: only then can latencies be
    compared. Without any rate there is nothing to offer."""
    points = list(run.points())
    rates: dict[Value, list[float]] = {}
    for log in place.kept.glob("pass-*-cell-*.log"):
        point = points[int(log.stem.rpartition("-")[2]) - 1]
        if found := steady(read_status(read_log(log))):
            rates.setdefault(point["workload"], []).append(found.rate_per_s)
    for number, point in enumerate(points, 1):
        if of := rates.get(point["workload"]):
            target = max(1, int(float(run.parameters["open_loop_part"]) * min(of)))
            name, seconds = f"{OPEN}cell-{number}", float(run.parameters["seconds"])
            yield _cell(name, run, place, point, seconds, (point,), target)


def _cell(
    name: str,
    run: Run,
    place: Place,
    point: Mapping[str, Value],
    seconds: float,
    points: tuple[Mapping[str, Value], ...],
    target_per_s: int = 0,
) -> Step:
    workload = str(point["workload"])
    emptied = ("cassandra.truncate=true",) if workload in client.INSERTING else ()
    properties = (*_properties(run, point), *emptied, *client.measuring(place, name, workload, seconds))
    command = client.command(place, "run", "cql", workload, properties, point["threads"], target_per_s)
    return Step(name, command, 300 + 2 * seconds, points)


def _properties(run: Run, point: Mapping[str, Value]) -> tuple[str, ...]:
    engine, inserting = str(point["engine"]), point["workload"] in client.INSERTING
    return (
        f"hosts={cassandra.addresses(int(run.levels['nodes']))}",
        f"cassandra.keyspace=replicas_{point['replication']}",
        f"cassandra.replication={point['replication']}",
        f"cassandra.table_options={cassandra.ENGINES[engine]}",
        f"cassandra.readconsistencylevel={point['level']}",
        f"cassandra.writeconsistencylevel={point['level']}",
        f"cassandra.entry={point['entry']}",
        f"table={engine}_{'written' if inserting else 'read'}",
        # What is inserted comes after what is loaded; a table that is only written has nothing loaded.
        f"recordcount={1 if inserting else run.parameters['records']}",
        f"fieldcount={run.parameters['fields']}",
        f"fieldlength={run.parameters['field_bytes']}",
        # Emptying a table on a slow disk takes its time.
        "cassandra.readtimeoutmillis=60000",
    )


def _reads(run: Run) -> bool:
    return any(workload not in client.INSERTING for workload in run.swept["workload"])
