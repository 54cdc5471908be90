"""The two tables of the MyCassandra blog: seconds for N puts in sequence and N gets at random, and for writing N rows
M times each in random order and reading them, by one client of one Cassandra node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Notes
from harness.experiments.nodes import OverNodes
from harness.fields import Field, Value
from harness.node_limits import PARAMETERS, NodeLimits
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores import cassandra
from harness.ycsb_output import read_report, read_status

# Stores of which a node is told the memory for memtables, in MiB, and those behind the memtable `aiodb`. All nodes have
# the same heap, and the same memory in total where that is limited.
STOCK = MappingProxyType({"stock-128": 128, "stock-64": 64, "stock-4": 4, "stock-1": 1})
BEHIND = ("aiodb", "rocksdb", "lmdb", "mysql", "redis")

PUT_BYTES = 1024
OVERWRITE_BYTES = 512
TITLES = MappingProxyType(
    {
        "put": f"N puts of {PUT_BYTES} bytes in sequence",
        "get": f"then N gets of {PUT_BYTES} bytes at random",
        "overwrite": f"N times M random overwrites of {OVERWRITE_BYTES} bytes",
        "read": "then N random reads of the rows overwritten",
    }
)
SLOWEST_PER_S = 50
WORKLOAD = "readonly"
# What is compacted is there twice.
TIMES_ON_DISK = 2
# The first write to a database server through a virtual machine that has just begun may take longer than Cassandra's
# two seconds: it would be refused, and no other be measured.
PATIENCE = ("read_request_timeout: 20000ms", "write_request_timeout: 20000ms")


class Engines(OverNodes):
    """A node for each store and repetition; a table for each N and kind of row."""

    name = "engines"
    stores = (*STOCK, *BEHIND)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "test": Field(str, "what is timed", choices=tuple(TITLES)),
            "rows": Field(int, "N", least=100, most=100_000_000),
        }
    )
    swept = frozenset({"test", "rows"})
    parameters = MappingProxyType(
        {
            "times": Field(int, "M, how often each row is overwritten", least=1, most=1000, default=5),
            "passes": Field(int, "how often all is timed on a node, in fresh tables", least=1, most=20, default=1),
            "node_memory_mib": PARAMETERS["node_memory_mib"],
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("seconds", "time", "s", main=True),
        Metric("operations_per_s", "throughput", "1/s"),
        Metric("data_files", "files that a memtable was flushed to", ""),
    )
    notes = Notes(
        durability="commit log periodic, aiodb and the others behind it `interval`; LMDB's writes are always `sync`",
        latency="one client, a closed loop: the time is the sum of its waits",
        method=(
            "Every node has the same heap, 512 MiB. `stock-N` is Cassandra's default memtable with N MiB for all "
            "memtables; the blog's `none` cannot be set in Cassandra 5, and `stock-1` comes next to it. The others "
            "hold the rows in a store of their own, behind the same plug-in. MySQL and Redis are servers beside the "
            "node, on the same machine: MySQL keeps 64 MB of the rows in memory, Redis all, and single rows of MySQL "
            "are read by SQL.",
            "With `node_memory_mib` every node has the same memory in total, whatever its store: its control group "
            "counts the heap, what a store takes outside of it, its server, and page cache, which the kernel takes "
            "back first. The points of a node that is killed for its memory have failed.",
            "Rows that are overwritten are there before, each once: at random some would be missed.",
            "Before the first timing, and untimed, 2,000 rows are put and read: a virtual machine that has just begun "
            "would be slow whatever the engine.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: rows are put before they are read"
        tests = run.swept["test"]
        for test, before in (("get", "put"), ("read", "overwrite")):
            if test in tests and before not in tests[: tests.index(test)]:
                return f"`test`: {test} reads what {before} writes, which must come before it"
        return super().refusal(run)

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return [*client.programs(place, (WORKLOAD,)), *cassandra.programs(place, _behind(run))]

    def packages(self, run: Run) -> Sequence[str]:
        return cassandra.packages(_behind(run))

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        limits = NodeLimits.of(run.parameters)
        if run.store in STOCK:
            room = (f"memtable_heap_space: {STOCK[run.store]}MiB", f"memtable_offheap_space: {STOCK[run.store]}MiB")
            return (cassandra.cluster(place, 1, settings=(*PATIENCE, *room), limits=limits),)
        return (cassandra.cluster(place, 1, settings=PATIENCE, memtables=_behind(run), limits=limits),)

    def expected_seconds(self, run: Run) -> float:
        passes = int(run.parameters["passes"])
        timed = [_operations(run, point) / 1500 + client.OPENING_SECONDS for point in run.points()]
        return cassandra.FIRST_NODE_SECONDS + 20 + passes * sum(timed)

    def needed_bytes(self, run: Run) -> float:
        """Tables of all passes stay until the end."""
        sizes = {"put": PUT_BYTES, "overwrite": OVERWRITE_BYTES}
        written = sum(_operations(run, of) * sizes.get(str(of["test"]), 0) for of in run.points())
        return cassandra.disk_bytes(1, TIMES_ON_DISK * int(run.parameters["passes"]) * written)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        steps = []
        for test in ("put", "get"):
            point: dict[str, Value] = {"test": test, "rows": 2000}
            steps.append(Step(f"warm-up-{test}", _command(run, place, point, "warm"), 600))
        for passed in range(1, int(run.parameters["passes"]) + 1):
            for point in run.points():
                name = f"pass-{passed}-{point['test']}-{point['rows']}"
                limit = 300 + _operations(run, point) / SLOWEST_PER_S
                if point["test"] == "overwrite":
                    fill = _command(run, place, {**point, "test": "fill"}, f"pass_{passed}")
                    steps.append(Step(f"{name}-fill", fill, limit))
                steps.append(Step(name, _command(run, place, point, f"pass_{passed}"), limit, (point,)))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        (point,) = finished.step.points
        report = read_report(finished.output)
        milliseconds = report.sections.get("OVERALL", {}).get("RunTime(ms)", 0.0)
        done = report.operations()
        if milliseconds <= 0 or done != _operations(run, point):
            raise BadOutputError(
                f"{done} operations in {milliseconds} ms, and {_operations(run, point)} were asked for"
            )
        seconds = milliseconds / 1000
        table = _table(point, finished.step.name.rpartition(f"-{point['test']}")[0].replace("-", "_"))
        files = len(list((place.scratch / "cluster").glob(f"node1/data/*/{table}-*/*-Data.db")))
        status = read_status(finished.log)
        window = (status[0].t_s, status[-1].t_s) if status else (finished.began_s, finished.ended_s)
        values = {"seconds": seconds, "operations_per_s": done / seconds, "data_files": float(files)}
        return [Row(point, values, window, None, ("flushed",) if files else ())]


def _behind(run: Run) -> tuple[str, ...]:
    """What is behind the memtable `aiodb`, where the store has it."""
    return (run.store,) if run.store in BEHIND else ()


def _operations(run: Run, point: Mapping[str, Value]) -> int:
    return int(point["rows"]) * (int(run.parameters["times"]) if point["test"] == "overwrite" else 1)


def _table(point: Mapping[str, Value], prefix: str) -> str:
    kind = "put" if point["test"] in ("put", "get") else "overwritten"
    return f"{prefix}_{kind}_{point['rows']}"


def _command(run: Run, place: Place, point: Mapping[str, Value], prefix: str) -> tuple[str, ...]:
    test = str(point["test"])
    engine = "stock" if run.store in STOCK else "aiodb"
    properties = (
        f"hosts={cassandra.addresses(1)}",
        f"cassandra.table_options={cassandra.ENGINES[engine].options}",
        "cassandra.readconsistencylevel=ONE",
        "cassandra.writeconsistencylevel=ONE",
        f"table={_table(point, prefix)}",
        f"recordcount={point['rows']}",
        f"operationcount={_operations(run, point)}",
        "fieldcount=1",
        f"fieldlength={PUT_BYTES if test in ('put', 'get') else OVERWRITE_BYTES}",
        "insertorder=ordered",
        "requestdistribution=uniform",
        *(("readproportion=0", "updateproportion=1") if test == "overwrite" else ()),
    )
    phase = "load" if test in ("put", "fill") else "run"
    return client.command(place, phase, "cql", WORKLOAD, properties, 1)
