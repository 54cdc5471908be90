"""Cells over a cluster of real Cassandra nodes: how many operations per second, how late, for each combination of
engine, replication factor, consistency level, entry node and number of clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import psutil

from harness.experiments import client
from harness.experiments.base import Experiment, Finished, Metric, Notes, Place, Row, Service, Step
from harness.experiments.cassandra_figures import figures_of
from harness.experiments.levels import LEVELS, replicas
from harness.fields import Field, Value
from harness.plan import Run
from harness.report.figures import Figure, HeatMap
from harness.results import Results
from harness.stores import cassandra

# Of the host's memory, what nodes may take.
MEMORY_PART = 0.7
LOADING_THREADS = 16
# Loading, on a cluster that has not warmed up.
RECORDS_PER_S = 3_000


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
            "beside": Field(
                str, "which published figures are drawn", choices=("none", "disk", "memory"), default="none"
            ),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = client.METRICS
    notes = Notes(
        durability=(
            "commit log `batch`: acknowledged means on the device of every node that the level asks for, with aiodb "
            "`sync`; `periodic`: a power cut may take 10 s, with aiodb `interval`"
        ),
        latency="a closed loop: each thread waits for its answer before it asks again",
        method=(
            client.FLATNESS,
            "All engines are tables of one cluster, so that a comparison shares its nodes, its warmth and its minute. "
            "A table that is written is emptied (TRUNCATE) before each cell; tables that are read are loaded once, at "
            "level ALL. Cells of one pass come one after the other, then all again.",
            "Nodes share the processor with each other and with the client. Points of several nodes are marked for it: "
            "they show a shape, and not what nodes on machines of their own do.",
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
        for replication in map(int, run.swept["replication"]):
            if replication > nodes:
                return f"`replication`: {replication} replicas need as many nodes, and there are {nodes}"
            for level in map(str, run.swept["level"]):
                if replicas(level, replication) > replication:
                    return f"`level`: {level} asks for more replicas than the {replication} that there are"
        return None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [client.launcher(place), client.jar(place), cassandra.keeper(place), cassandra.plugin(place)]

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return (cassandra.cluster(place, int(run.levels["nodes"]), run.parameters["commit_log"] == "batch"),)

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
        for passed in range(1, int(run.parameters["passes"]) + 1):
            for number, point in enumerate(run.points(), 1):
                seconds = float(run.parameters["seconds"])
                yield _cell(f"pass-{passed}-cell-{number}", run, place, point, seconds, (point,))

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        marks = ["shared CPU: shape only"] if int(run.levels["nodes"]) > 1 else []
        return [client.measured_row(finished, point, place, float(run.parameters["seconds"]), False, marks)]

    def figures(self, results: Results) -> Sequence[Figure | HeatMap]:
        return figures_of(results)


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


def _cell(
    name: str,
    run: Run,
    place: Place,
    point: Mapping[str, Value],
    seconds: float,
    points: tuple[Mapping[str, Value], ...],
) -> Step:
    workload = str(point["workload"])
    emptied = ("cassandra.truncate=true",) if workload in client.INSERTING else ()
    properties = (*_properties(run, point), *emptied, *client.measuring(place, name, workload, seconds))
    command = client.command(place, "run", "cql", workload, properties, point["threads"])
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
    )


def _reads(run: Run) -> bool:
    return any(workload not in client.INSERTING for workload in run.swept["workload"])
