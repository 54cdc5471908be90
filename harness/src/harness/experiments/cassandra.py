"""Cells over a cluster of real Cassandra nodes: how many operations per second, how late, for each combination of
engine, replication factor, consistency level, entry node and number of clients."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Notes
from harness.experiments.levels import LEVELS, replicas
from harness.experiments.nodes import OverNodes
from harness.fields import Field, Value
from harness.flatness import steady
from harness.limits import KILLED_FOR_MEMORY
from harness.node_limits import PARAMETERS, NodeLimits
from harness.parts import rows_so_far
from harness.processes import read_log
from harness.rows import DIED, Metric, Row
from harness.run import Run, rotated
from harness.sampling import HostSample
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores import cassandra
from harness.ycsb_output import mean_latencies, rates, read_status

LOADING_THREADS = 16
# Nodes on one machine disturb each other where its processor has less idle time than this.
IDLE_FRACTION = 0.20
# How names begin of what is measured in a closed loop, and in an open one.
CLOSED = "pass-"
OPEN = "open_"
SHARED = "shared CPU: shape only"
# A call of warming up: two windows in which throughput can be flat.
WARMING_SECONDS = 20.0
# Loading, on a cluster that has not warmed up.
RECORDS_PER_S = 3_000
# What one client does on a node, and from how many on more of them do no more, about.
OPERATIONS_PER_S = 700
FULL_THREADS = 12


class Cassandra(OverNodes):
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
    # A table that is written is emptied before each cell, and nobody writes into one that is read.
    resumable = True
    parameters = MappingProxyType(
        {
            "records": Field(int, "records that are loaded into a table to be read", least=100, most=1_000_000_000),
            "seconds": Field(int, "seconds for each cell at most", least=20, most=3600),
            "operations": Field(
                int,
                "of each cell, whose execution time is measured; 0: as many as it does in its seconds",
                least=0,
                most=1_000_000_000,
                default=0,
            ),
            "passes": Field(int, "how often each cell is measured within a cluster", least=1, most=20, default=1),
            "warm_up_seconds": Field(
                int, "seconds of each workload before the first cell, at most: until it is flat", most=3600, default=20
            ),
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
            **PARAMETERS,
            "node_death": Field(
                str,
                "what it is that a node dies of its limit of memory",
                choices=("failure", "result"),
                default="failure",
            ),
            "beside": Field(
                str, "which published figures are drawn", choices=("none", "disk", "memory"), default="none"
            ),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        *client.METRICS,
        Metric("execution_s", "execution time of all operations", "s"),
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
            "Each workload warms up on each table until its throughput is flat, once for a cluster and not before each "
            "cell. All engines are tables of one cluster, so that a comparison shares its nodes, its warmth and its "
            "minute. A table that is written is emptied (TRUNCATE) before each cell; tables that are read are loaded "
            "once, at level ALL. Cells of one pass come one after the other, then all again.",
            "Nodes share the processor with each other and with the client. A point of several nodes during which it "
            f"was idle for less than {IDLE_FRACTION:.0%} is marked for it: it shows a shape, and not what nodes on "
            "machines of their own do.",
            "Where the parameters limit nodes, each is a control group of its own. Writes that the kernel does later "
            "by itself, as those of a periodic commit log, are not limited: it does not know whose they are.",
            "A cluster that dies is started again for the cells that are left, and one that was interrupted for those "
            "that are missing: such cells are marked with the part of the run in which they were measured.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        nodes = int(run.levels["nodes"])
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh cluster has nothing to run on"
        for workload in client.READING_TOO:
            if workload in run.swept["workload"]:
                return f"`workload`: {workload} reads, and a table that is inserted into is emptied before each cell"
        for replication in map(int, run.swept["replication"]):
            if replication > nodes:
                return f"`replication`: {replication} replicas need as many nodes, and there are {nodes}"
            for level in map(str, run.swept["level"]):
                if replicas(level, replication) > replication:
                    return f"`level`: {level} asks for more replicas than the {replication} that there are"
        return super().refusal(run)

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [*client.programs(place, map(str, run.swept["workload"])), *cassandra.programs(place)]

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        batch = run.parameters["commit_log"] == "batch"
        return (cassandra.cluster(place, int(run.levels["nodes"]), batch, limits=NodeLimits.of(run.parameters)),)

    def expected_seconds(self, run: Run) -> float:
        rounds = int(run.parameters["passes"]) + (1 if run.parameters["open_loop_part"] else 0)
        measuring = rounds * sum(_cell_seconds(run, point) + client.OPENING_SECONDS for point in run.points())
        tables = _tables(run)
        loading = tables * int(run.parameters["records"]) / RECORDS_PER_S if _reads(run) else 0.0
        warming = tables * len(run.swept["workload"]) * float(run.parameters["warm_up_seconds"])
        starting = cassandra.FIRST_NODE_SECONDS + cassandra.NODE_SECONDS * int(run.levels["nodes"])
        return starting + loading + warming + measuring

    def needed_bytes(self, run: Run) -> float:
        """What was written stays until its own table is emptied: of each the last cell is there at once."""
        replicas_of_all = len(run.swept["engine"]) * sum(map(int, run.swept["replication"]))
        loaded = replicas_of_all * client.loaded_bytes(run.parameters) if _reads(run) else 0.0
        writes = any(workload in client.WRITTEN_PARTS for workload in run.swept["workload"])
        seconds = float(run.parameters["seconds"]) + client.OPENING_SECONDS
        written = client.written_bytes(run.parameters, seconds, cassandra.WRITES_PER_S) if writes else 0.0
        return cassandra.disk_bytes(int(run.levels["nodes"]), loaded + _tables(run) * written)

    def steps(self, run: Run, place: Place) -> Iterable[Step]:
        limit = limiting(place, int(run.levels["nodes"]), NodeLimits.of(run.parameters))
        cells = []
        for name, point in _cells(run):
            seconds, operations = float(run.parameters["seconds"]), _operations(run)
            cell = _cell(name, run, place, point, seconds, (point,), operations=operations)
            cells.append(dataclasses.replace(cell, prepare=limit, may_die=_may_die(run)))
        preparation = _preparation(run, place, _wanted(run, place))
        if not float(run.parameters["open_loop_part"]):
            once = float(run.parameters["warm_up_seconds"]) < 2 * WARMING_SECONDS
            return [*preparation, *cells] if once else itertools.chain(preparation, cells)
        opened = (dataclasses.replace(cell, prepare=limit) for cell in _open_cells(run, place))
        return itertools.chain(preparation, cells, opened)

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.death is not None:
            # A node that dies while it is warmed up would do no better afterwards.
            row = _died(finished, place)
            return [
                dataclasses.replace(row, levels=point)
                for point in finished.step.points or finished.step.needed_by or ()
            ]
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        row = client.measured_row(finished, point, place, float(run.parameters["seconds"]))
        if not finished.step.name.startswith(OPEN):
            operations = _operations(run)
            took = {"execution_s": client.execution_s(finished, operations)} if operations else {}
            return [dataclasses.replace(row, values={**row.values, **took})]
        values = {f"{OPEN}{name}": value for name, value in row.values.items() if name != "operations_per_s"}
        values[f"{OPEN}per_s"] = row.values["operations_per_s"]
        return [dataclasses.replace(row, values=values, percentiles_us={})]

    def marks(self, run: Run, row: Row, host: Sequence[HostSample]) -> Sequence[str]:
        return () if int(run.levels["nodes"]) == 1 or idle_enough(row, host) else (SHARED,)


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


def _operations(run: Run) -> int:
    return int(run.parameters["operations"])


def _cell_seconds(run: Run, point: Mapping[str, Value]) -> float:
    """About how long a cell takes."""
    most = float(run.parameters["seconds"])
    clients = min(int(point["threads"]), FULL_THREADS)
    return min(most, _operations(run) / (clients * OPERATIONS_PER_S)) if _operations(run) else most


def _tables(run: Run) -> int:
    """Tables of each kind: those that are read, and those that are written."""
    return len(run.swept["replication"]) * len(run.swept["engine"])


def _cells(run: Run) -> Iterator[tuple[str, Mapping[str, Value]]]:
    """The name and the point of every cell of a closed loop, in order. Each repetition and pass begins with another
    cell, so that none is always measured on the same state of the cluster; a cell keeps its name."""
    cells = list(enumerate(run.points(), 1))
    for passed in range(1, int(run.parameters["passes"]) + 1):
        for number, point in rotated(cells, run.repetition + passed - 2):
            yield f"{CLOSED}{passed}-cell-{number}", point


def _wanted(run: Run, place: Place) -> list[Mapping[str, Value]]:
    """The points that are not measured yet, or not as often as asked for. A workload of which any cell is missing may
    be offered another rate than before, so all of its points may have to be."""
    measured = {row.step for row in rows_so_far(place)}
    missing = [point for name, point in _cells(run) if name not in measured]
    changing = {point["workload"] for point in missing}
    opens = bool(run.parameters["open_loop_part"])
    return [
        point
        for number, point in enumerate(run.points(), 1)
        if point in missing or (opens and (point["workload"] in changing or f"{OPEN}cell-{number}" not in measured))
    ]


def _preparation(run: Run, place: Place, wanted: Sequence[Mapping[str, Value]]) -> Iterator[Step]:
    """Loads what is read, and lets every table and workload warm up, as far as points are wanted of them."""
    first = next(run.points())
    for replication in run.swept["replication"]:
        for engine in run.swept["engine"]:
            of_table = [point for point in wanted if (point["replication"], point["engine"]) == (replication, engine)]
            point = {**first, "replication": replication, "engine": engine, "level": "ALL", "entry": "token"}
            reading = tuple(of for of in of_table if of["workload"] not in client.INSERTING)
            if reading:
                read = str(reading[0]["workload"])
                properties = _properties(run, {**point, "workload": read})
                loading = client.command(place, "load", "cql", read, properties, LOADING_THREADS)
                limit = 600 + int(run.parameters["records"]) / 100
                yield Step(f"load-{engine}-{replication}", loading, limit, needed_by=reading)
            for workload in run.swept["workload"] if int(run.parameters["warm_up_seconds"]) else ():
                needed_by = tuple(of for of in of_table if of["workload"] == workload)
                if needed_by:
                    name = f"warm-up-{engine}-{replication}-{workload}"
                    warmed = {**point, "workload": workload, "threads": max(map(int, run.swept["threads"]))}
                    for step in _warming(name, run, place, warmed):
                        yield dataclasses.replace(step, needed_by=needed_by, may_die=_may_die(run))


def _warming(name: str, run: Run, place: Place, point: Mapping[str, Value]) -> Iterator[Step]:
    """Calls of some seconds each, until the throughput is flat in one, or the time for it is over."""
    left_s = float(run.parameters["warm_up_seconds"])
    for number in itertools.count(1):
        # What is left at the end is a call of its own only if it can be flat.
        seconds = WARMING_SECONDS if left_s >= 2 * WARMING_SECONDS else left_s
        step = _cell(name if number == 1 else f"{name}-{number}", run, place, point, seconds, ())
        yield step
        left_s -= seconds
        if left_s <= 0 or _is_flat(place.kept / f"{step.name}.log"):
            return


def _is_flat(log: Path) -> bool:
    found = steady(read_status(read_log(log))) if log.exists() else None
    return found is not None and found.flat


def _open_cells(run: Run, place: Place) -> Iterator[Step]:
    """Every cell again, at a rate that all of its workload have shown they can do: only then can latencies be
    compared. Cells that failed have shown nothing, and without any rate there is nothing to offer."""
    shown: dict[Value, list[float]] = {}
    for row in rows_so_far(place):
        if row.step.startswith(CLOSED) and not any(mark.startswith(DIED) for mark in row.marks):
            shown.setdefault(row.levels["workload"], []).append(row.values["operations_per_s"])
    for number, point in enumerate(run.points(), 1):
        if of := shown.get(point["workload"]):
            target = max(1, int(float(run.parameters["open_loop_part"]) * min(of)))
            name, seconds = f"{OPEN}cell-{number}", float(run.parameters["seconds"])
            yield _cell(name, run, place, point, seconds, (point,), target)


def _died(finished: Finished, place: Place) -> Row:
    """What was done until a node died of its memory, for whichever points that is. Another death is no result."""
    assert finished.death is not None
    if KILLED_FOR_MEMORY not in finished.death and not cassandra.ran_out_of_heap(place):
        raise BadOutputError(finished.death)
    said = read_status(finished.log)
    # Until the death is noticed, the client asks on. YCSB counts operations that are refused at once like any others.
    status = list(itertools.takewhile(lambda of: not of.failed, said))
    alive = [of for of in status if of.operations < status[-1].operations] if status else []
    if not alive:
        window = (finished.began_s, finished.ended_s)
        mark = f"{DIED}before it had done anything for a second without a failure: {finished.death}"
        return Row({}, {}, window, marks=(mark,))
    last = status[len(alive)]
    seconds = last.at - alive[0].at
    values = {"operations_per_s": (last.operations - alive[0].operations) / seconds}
    when = f"{seconds:.0f} s after the first operation"
    if failing := said[len(status) :]:
        # That may be long before the death, where operations wait too long for a node that lives.
        when = f"with operations failing {failing[0].at - alive[0].at:.0f} s after the first"
    mark = f"{DIED}{when}: {finished.death}"
    shown = [*alive, last]
    window = (alive[0].t_s, last.t_s)
    return Row({}, values, window, None, (mark,), tuple(rates(shown)), tuple(mean_latencies(shown)))


def _cell(
    name: str,
    run: Run,
    place: Place,
    point: Mapping[str, Value],
    seconds: float,
    points: tuple[Mapping[str, Value], ...],
    target_per_s: int = 0,
    operations: int = 0,
) -> Step:
    workload = str(point["workload"])
    emptied = ("cassandra.truncate=true",) if workload in client.INSERTING else ()
    properties = (*_properties(run, point), *emptied, *client.measuring(place, name, workload, seconds, operations))
    command = client.command(place, "run", "cql", workload, properties, point["threads"], target_per_s)
    return Step(name, command, 300 + 2 * seconds, points)


def _properties(run: Run, point: Mapping[str, Value]) -> tuple[str, ...]:
    engine, inserting = str(point["engine"]), point["workload"] in client.INSERTING
    return (
        f"hosts={cassandra.addresses(int(run.levels['nodes']))}",
        f"cassandra.keyspace=replicas_{point['replication']}",
        f"cassandra.replication={point['replication']}",
        f"cassandra.table_options={cassandra.ENGINES[engine].options}",
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


def _may_die(run: Run) -> bool:
    return run.parameters["node_death"] == "result"


def _reads(run: Run) -> bool:
    return any(workload not in client.INSERTING for workload in run.swept["workload"])
