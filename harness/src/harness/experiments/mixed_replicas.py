"""Replicas of one table on different engines, as in MyCassandra's cluster: writes go to all, reads where they are
cheap. Beside it clusters whose replicas are all on one of these engines."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Notes
from harness.experiments.cassandra import IDLE_FRACTION, LOADING_THREADS, SHARED, idle_enough
from harness.experiments.levels import LEVELS, replicas
from harness.experiments.nodes import OverNodes, nodes_obstacle
from harness.experiments.processor import mean_cores
from harness.fields import Field, Value
from harness.node_limits import PARAMETERS, NodeLimits
from harness.replica_counts import counts_between
from harness.rows import Metric, Row
from harness.run import Run, rotated
from harness.sampling import OF_NODE, HostSample, ProcessSample, read_processes
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores import cassandra
from harness.ycsb_output import read_status

# What is behind the table of each node, in their order.
BEHIND = MappingProxyType(
    {
        "aiodb": ("aiodb",) * 3,
        "rocksdb": ("rocksdb",) * 3,
        "mysql": ("mysql",) * 3,
        "redis": ("redis",) * 3,
        cassandra.MIXED: ("aiodb", "mysql", "redis"),
    }
)
NODES = 3
NUMBERS = range(1, NODES + 1)
# Which part of the operations reads; all others overwrite one field of a record.
MIXES = MappingProxyType({"half": 0.5, "write-heavy": 0.05, "read-heavy": 0.95})
# Where keys and their distribution stand.
WORKLOAD = "workloada"
KEYSPACE = "mixed"
# A read asks no more replicas than its level says.
TABLE_OPTIONS = f"{cassandra.ENGINES['aiodb'].options} AND speculative_retry = 'NONE'"
# Nodes whose virtual machines have just begun, on few cores, would refuse what is loaded.
SETTINGS = ("read_request_timeout: 60000ms", "write_request_timeout: 60000ms")
# A difference of cost counts from a tenth on.
THRESHOLD = "dynamic_snitch_badness_threshold: 0.1"
# What counts what each node does as a replica.
COUNTING = "replicas"
RECORDS_PER_S = 800
# A node whose memtable is another store begins twice.
RESTART_SECONDS = 12.0
# What MySQL keeps of the rows in memory unless told otherwise.
POOL_MIB = 64


class MixedReplicas(OverNodes):
    """A cluster of three nodes for each store and repetition, and in it one table with a replica on each."""

    name = "mixed-replicas"
    stores = tuple(BEHIND)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "mix": Field(str, "which part reads", choices=tuple(MIXES)),
            "level": Field(str, "consistency level, the same for reads and writes", choices=LEVELS),
        }
    )
    swept = frozenset({"mix", "level"})
    parameters = MappingProxyType(
        {
            "records": Field(int, "records that are loaded", least=100, most=1_000_000_000),
            "seconds": Field(int, "seconds for each point at most", least=20, most=3600),
            "threads": Field(int, "YCSB's client threads", least=1, most=1024, default=16),
            "target_per_s": Field(int, "operations/s that are offered; 0: as many as are done", least=0, default=0),
            "warm_up_seconds": Field(int, "seconds of half reads before the first point", least=20, most=3600),
            "read_cost_weight": Field(
                int, "-Daiodb.read.cost.weight of nodes on different engines; 0: reads go anywhere", least=0, default=10
            ),
            "cache_mib": Field(
                int, "memory of a node for aiodb's cache, or MySQL's; 0: none, and what MySQL has", least=0, default=0
            ),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=10),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=100),
            "node_memory_mib": PARAMETERS["node_memory_mib"],
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("operations_per_s", "throughput", "1/s", main=True),
        Metric("cpu_us", "processor time, nodes with their servers", "µs/operation", main=True),
        *(
            Metric(f"{kind}_{value}_us", f"{kind}, {name}", "µs")
            for kind in ("read", "update")
            for value, name in (("mean", "mean"), ("p50", "median"), ("p99", "99th percentile"))
        ),
        *(Metric(f"reads_{node}", f"reads served by node {node}", "%") for node in NUMBERS),
        *(Metric(f"node_{node}_read_us", f"a read within node {node}, mean", "µs") for node in NUMBERS),
        *(Metric(f"node_{node}_write_us", f"a write within node {node}, mean", "µs") for node in NUMBERS),
        *(Metric(f"node_{node}_cpu_us", f"processor time, node {node}", "µs/operation") for node in NUMBERS),
    )
    notes = Notes(
        durability="commit log periodic, where a power cut may take 10 s; aiodb and the other engines `interval`",
        latency=client.LOOP,
        method=(
            client.FLATNESS,
            f"In `{cassandra.MIXED}` the table lies in aiodb on node 1, in MySQL on node 2 and in Redis on node 3, "
            "behind the same plug-in. MySQL and Redis are servers beside their node. These nodes tell each other what "
            "a read costs them, and a read goes to the cheapest, to as many as its level asks for. On one engine no "
            "node tells anything. A read that is late is not sent to another node (speculative_retry NONE).",
            "aiodb reads the device with each read, unless `cache_mib` gives it memory for rows; MySQL has so much, or "
            "64 MB, RocksDB always 64 MB, and Redis has all rows in memory.",
            "What a node does as a replica is Cassandra's own count: how many reads it has served, and the mean time "
            "that one, and a write, took within it (memtable and engine, its server's answer included), without "
            "queues, commit log and network. A read at a level of several replicas is counted at each of them.",
            "Processor time is what the kernel counts of a node's virtual machine and of its database server, sampled "
            "once a second over the part that is measured, by the operations that clients did in that time.",
            "All nodes and the client share one machine. Processor time for each operation tells what an operation "
            "takes of all of them; where nodes have machines of their own, the one that serves most reads is used up "
            f"first. A point during which the processor was idle for less than {IDLE_FRACTION:.0%} is marked for it.",
            "With `node_memory_mib` every node has the same memory in total, whatever its engine: heap, what an engine "
            "takes outside of it, its server, and page cache.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh cluster has nothing to run on"
        for level in map(str, run.swept["level"]):
            if replicas(level, NODES) > NODES:
                return f"`level`: {level} asks for more replicas than the {NODES} that there are"
        return super().refusal(run)

    def obstacle(self, run: Run) -> str | None:
        return nodes_obstacle(NODES) or NodeLimits.of(run.parameters).missing()

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        counting = place.checkout / "java" / "cluster" / "Replicas.java"
        return [*client.programs(place, (WORKLOAD,)), *cassandra.programs(place, _engines(run)), counting]

    def packages(self, run: Run) -> Sequence[str]:
        return cassandra.packages(_engines(run))

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        cache_mib, weight = int(run.parameters["cache_mib"]), int(run.parameters["read_cost_weight"])
        more = {
            "PARAMETERS": "\n".join([cassandra.INDEX, *([f"cache: {cache_mib}MiB"] if cache_mib else [])]),
            "SERVER_MEMORY_MB": str(cache_mib or POOL_MIB),
            "JVM_OPTIONS": f"-Daiodb.read.cost.weight={weight}" if run.store == cassandra.MIXED else "",
        }
        limits = NodeLimits.of(run.parameters)
        settings = (*SETTINGS, *((THRESHOLD,) if run.store == cassandra.MIXED else ()))
        nodes = cassandra.cluster(
            place, NODES, settings=settings, memtables=BEHIND[run.store], limits=limits, more=more
        )
        return (nodes, _counting(place))

    def expected_seconds(self, run: Run) -> float:
        restarts = sum(1 for memtable in BEHIND[run.store] if memtable != cassandra.OWN)
        starting = cassandra.FIRST_NODE_SECONDS + NODES * cassandra.NODE_SECONDS + restarts * RESTART_SECONDS
        loading = int(run.parameters["records"]) / RECORDS_PER_S
        points = sum(1 for _ in run.points())
        measuring = points * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
        return starting + loading + float(run.parameters["warm_up_seconds"]) + 2 * client.OPENING_SECONDS + measuring

    def needed_bytes(self, run: Run) -> float:
        seconds = sum(
            (1 - MIXES[str(point["mix"])]) * (float(run.parameters["seconds"]) + client.OPENING_SECONDS)
            for point in run.points()
        )
        written = client.written_bytes(run.parameters, seconds, cassandra.WRITES_PER_S)
        return cassandra.disk_bytes(NODES, NODES * client.loaded_bytes(run.parameters) + written)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        load = client.command(place, "load", "cql", WORKLOAD, _properties(run, "half", "ALL"), LOADING_THREADS)
        warm_s = float(run.parameters["warm_up_seconds"])
        first = str(run.swept["level"][0])
        steps = [
            Step("load", load, 600 + int(run.parameters["records"]) / 20),
            _step("warm-up", run, place, {"mix": "half", "level": first}, warm_s, 0),
        ]
        target_per_s, seconds = int(run.parameters["target_per_s"]), float(run.parameters["seconds"])
        # None is always measured on the same state of a cluster.
        for point in rotated(list(run.points()), run.repetition - 1):
            step = _step(f"{point['mix']}-{point['level']}", run, place, point, seconds, target_per_s)
            steps.append(dataclasses.replace(step, points=(point,)))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        row = client.measured_row(finished, point, place, float(run.parameters["seconds"]))
        rate = row.values["operations_per_s"]
        costs = processor_us(read_processes(place.kept / "processes.csv"), row.window_s, rate)
        # The counts have the time of the day, as YCSB's own lines do.
        first = read_status(finished.log)[0]
        began, ended = (second - first.t_s + first.at for second in row.window_s)
        counted = replica_values(place.kept / f"{COUNTING}.out", began, ended)
        return [dataclasses.replace(row, values={**row.values, **costs, **counted})]

    def marks(self, run: Run, row: Row, host: Sequence[HostSample]) -> Sequence[str]:
        return () if idle_enough(row, host) else (SHARED,)


def processor_us(
    samples: Sequence[ProcessSample], window_s: tuple[float, float], rate_per_s: float
) -> Mapping[str, float]:
    """Processor time for each operation, of each node with its server and of all."""
    cores = mean_cores(samples, window_s)
    found = {}
    for node in NUMBERS:
        virtual_machine = cores.get(f"node {node}", 0.0)
        if not virtual_machine:
            raise BadOutputError(f"of node {node} there is no sample within the part that was measured")
        servers = sum(of for name, of in cores.items() if name.endswith(f"{OF_NODE}{node}"))
        found[f"node_{node}_cpu_us"] = (virtual_machine + servers) * 1e6 / rate_per_s
    return {"cpu_us": sum(found.values()), **found}


def replica_values(path: Path, began: float, ended: float) -> Mapping[str, float]:
    """Which nodes served the reads between two times, and how long reads and writes took within each."""
    counted = counts_between(path, began, ended)
    if missing := [node for node in NUMBERS if node not in counted]:
        raise BadOutputError(f"what node {missing[0]} did as a replica was not counted while this was measured")
    reads = sum(of.reads for of in counted.values())
    found = {}
    for node, of in counted.items():
        if reads:
            found[f"reads_{node}"] = 100 * of.reads / reads
        if of.reads:
            found[f"node_{node}_read_us"] = of.read_us / of.reads
        if of.writes:
            found[f"node_{node}_write_us"] = of.write_us / of.writes
    return found


def _engines(run: Run) -> tuple[str, ...]:
    return tuple(dict.fromkeys(BEHIND[run.store]))


def _counting(place: Place) -> Service:
    command = ("env", *cassandra.variables(place), str(place.checkout / "scripts" / "cluster.sh"), COUNTING, KEYSPACE)
    counts = place.kept / f"{COUNTING}.out"
    return Service(COUNTING, command, lambda: counts.exists() and counts.stat().st_size > 0, seconds_to_start=120)


def _step(name: str, run: Run, place: Place, point: Mapping[str, Value], seconds: float, target_per_s: int) -> Step:
    mix = str(point["mix"])
    properties = (*_properties(run, mix, str(point["level"])), *client.measuring(place, name, WORKLOAD, seconds))
    threads = run.parameters["threads"]
    command = client.command(place, "run", "cql", WORKLOAD, properties, threads, target_per_s)
    return Step(name, command, 300 + 2 * seconds)


def _properties(run: Run, mix: str, level: str) -> tuple[str, ...]:
    return (
        f"hosts={cassandra.addresses(NODES)}",
        f"cassandra.keyspace={KEYSPACE}",
        f"cassandra.replication={NODES}",
        f"cassandra.table_options={TABLE_OPTIONS}",
        f"cassandra.readconsistencylevel={level}",
        f"cassandra.writeconsistencylevel={level}",
        "cassandra.readtimeoutmillis=60000",
        f"recordcount={run.parameters['records']}",
        f"fieldcount={run.parameters['fields']}",
        f"fieldlength={run.parameters['field_bytes']}",
        f"readproportion={MIXES[mix]}",
        f"updateproportion={1 - MIXES[mix]:g}",
    )
