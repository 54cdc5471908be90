"""Nodes that join one by one while a client asks the cluster all the time: what each further node gains, and what the
clients notice of its joining."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments import client
from harness.experiments.base import Notes
from harness.experiments.cassandra import IDLE_FRACTION, LOADING_THREADS, SHARED, idle_enough, limiting
from harness.experiments.nodes import OverNodes
from harness.fields import Field
from harness.flatness import NOT_FLAT, WINDOW_SECONDS, steady
from harness.node_limits import PARAMETERS, NodeLimits
from harness.rows import Metric, Row
from harness.run import Run
from harness.sampling import HostSample
from harness.steps import BadOutputError, Finished, Place, Service, Step
from harness.stores import cassandra
from harness.ycsb_output import Status, latencies, mean_latencies, percentile_over_time, rates, read_status

KINDS = {"readonly": "read", "workloadc": "read", "writeonly": "insert", "sensor": "insert"}
# How long a time the 99th percentiles over time are of, each.
P99_SECONDS = 5.0
_JOINS = re.compile(r"^grow: node (\d+) (joins|has joined)$")
_RECEIVES = re.compile(r"^grow: node (\d+) receives \d+ files\(([\d.]+)(B|KiB|MiB|GiB)\)$")
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Stage:
    """The time with so many nodes, in seconds since the run began."""

    nodes: int
    # When the last of them was told to join; None for the first node.
    asked_s: float | None
    began_s: float
    ended_s: float
    # What it was sent by the others, as it says itself.
    moved_bytes: float


class Grow(OverNodes):
    """One cluster for each engine and repetition, which begins with one node."""

    name = "grow"
    stores = ("cassandra",)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "engine": Field(str, "what holds the table", choices=tuple(cassandra.ENGINES)),
            "nodes": Field(int, "nodes of the cluster, one after the other", least=1, most=20),
        }
    )
    swept = frozenset({"nodes"})
    parameters = MappingProxyType(
        {
            "workload": Field(str, "a file of workloads/ that does one kind of operation", choices=tuple(KINDS)),
            "threads": Field(int, "YCSB's client threads", least=1, most=1024),
            "target_per_s": Field(int, "operations/s that are offered; 0: as many as are done", least=0, default=0),
            "records": Field(int, "records that are loaded before", least=100, most=1_000_000_000),
            "stage_seconds": Field(int, "from one node's joining to the next one's", least=60, most=36_000),
            "warm_up_seconds": Field(int, "of the workload before", most=3600, default=20),
            "fields": Field(int, "fields of a record", least=1, most=1000, default=10),
            "field_bytes": Field(int, "bytes of a field", least=1, most=1 << 20, default=100),
            **{name: PARAMETERS[name] for name in ("node_reads_per_s", "node_writes_per_s")},
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        *client.METRICS,
        Metric("gain", "throughput by that with a node less", "1"),
        Metric("join_s", "seconds until it had joined", "s"),
        Metric("joining_per_s", "throughput meanwhile", "1/s"),
        Metric("joining_p99_us", "99th percentile meanwhile", "µs"),
        Metric("moved_bytes", "bytes that it was sent", "B"),
    )
    notes = Notes(
        durability="commit log periodic, aiodb `interval`: a power cut may take 10 s",
        latency=client.LOOP,
        method=(
            "One client asks without a pause, through whichever node has the record. At fixed seconds a further node "
            "joins (`scripts/cluster.sh add`), takes over its part of the data, and serves it. " + client.FLATNESS,
            "Where the parameters limit nodes, each is a control group of its own, so that several on this machine "
            "stand for several machines with slow disks. A point of several nodes during which the processor was idle "
            f"for less than {IDLE_FRACTION:.0%} is marked for it: it shows a shape only.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        stages = [int(nodes) for nodes in run.swept["nodes"]]
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh cluster has nothing to run on"
        if stages != list(range(1, len(stages) + 1)):
            return "`nodes` must be 1, 2 and so on: each joins those before it"
        return super().refusal(run)

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        workload = str(run.parameters["workload"])
        return [*client.programs(place, (workload,)), *cassandra.programs(place), _grower(place)]

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return (cassandra.cluster(place, 1, limits=NodeLimits.of(run.parameters), may_grow_to=_most(run)),)

    def expected_seconds(self, run: Run) -> float:
        stages = len(run.swept["nodes"]) * float(run.parameters["stage_seconds"])
        return cassandra.FIRST_NODE_SECONDS + 30 + float(run.parameters["warm_up_seconds"]) + stages

    def needed_bytes(self, run: Run) -> float:
        stages = len(run.swept["nodes"])
        writes = KINDS[str(run.parameters["workload"])] == "insert"
        seconds = stages * float(run.parameters["stage_seconds"]) if writes else 0.0
        written = client.written_bytes(run.parameters, seconds, cassandra.WRITES_PER_S)
        return cassandra.disk_bytes(stages, client.loaded_bytes(run.parameters) + written)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        properties, workload = _properties(run), str(run.parameters["workload"])
        records, warm_s = int(run.parameters["records"]), float(run.parameters["warm_up_seconds"])
        load = client.command(place, "load", "cql", workload, properties, LOADING_THREADS)
        steps = [Step("load", load, 600 + records / 100)]
        if warm_s:
            steps.append(Step("warm-up", _client(run, place, "warm-up", warm_s), 300 + 2 * warm_s))
        seconds = len(run.swept["nodes"]) * float(run.parameters["stage_seconds"])
        groups = cassandra.node_groups(place, _most(run), NodeLimits.of(run.parameters))
        limit = limiting(place, _most(run), NodeLimits.of(run.parameters))
        grow = (
            "env", *cassandra.variables(place, groups=groups), str(_grower(place)), str(_most(run)),
            str(run.parameters["stage_seconds"]), *_client(run, place, "grow", seconds),
        )  # fmt: skip
        return [*steps, Step("grow", grow, 600 + 2 * seconds, tuple(run.points()), prepare=limit)]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        client.check(finished)
        if not finished.step.points:
            return ()
        status = read_status(finished.log)
        if len(status) < 2:
            raise BadOutputError("the client said nothing while nodes joined")
        rows: list[Row] = []
        for stage in _stages(finished, status):
            if row := _row(run, stage, status, place, rows[-1] if rows else None):
                rows.append(row)
        return rows

    def marks(self, run: Run, row: Row, host: Sequence[HostSample]) -> Sequence[str]:
        return () if row.levels["nodes"] == 1 or idle_enough(row, host) else (SHARED,)


def _most(run: Run) -> int:
    return max(int(nodes) for nodes in run.swept["nodes"])


def _grower(place: Place) -> Path:
    return place.checkout / "harness" / "grow.sh"


def _client(run: Run, place: Place, step: str, seconds: float) -> tuple[str, ...]:
    workload = str(run.parameters["workload"])
    properties = (*_properties(run), *client.measuring(place, step, workload, seconds))
    target = int(run.parameters["target_per_s"])
    return client.command(place, "run", "cql", workload, properties, run.parameters["threads"], target)


def _properties(run: Run) -> tuple[str, ...]:
    return (
        f"hosts={cassandra.addresses(1)}",
        "cassandra.keyspace=grow",
        "cassandra.replication=1",
        f"cassandra.table_options={cassandra.ENGINES[str(run.levels['engine'])].options}",
        "cassandra.readconsistencylevel=ONE",
        "cassandra.writeconsistencylevel=ONE",
        f"recordcount={run.parameters['records']}",
        f"fieldcount={run.parameters['fields']}",
        f"fieldlength={run.parameters['field_bytes']}",
    )


def _stages(finished: Finished, status: Sequence[Status]) -> list[Stage]:
    """The times between two changes of the cluster, by what the step's log says."""
    asked: dict[int, float] = {1: status[0].t_s}
    joined: dict[int, float] = {1: status[0].t_s}
    moved: dict[int, float] = {}
    for second, line in finished.log:
        if match := _JOINS.match(line):
            (asked if match[2] == "joins" else joined)[int(match[1])] = second
        elif match := _RECEIVES.match(line):
            moved[int(match[1])] = moved.get(int(match[1]), 0.0) + float(match[2]) * _BYTES[match[3]]
    return [
        Stage(
            nodes,
            asked[nodes] if nodes > 1 else None,
            joined[nodes],
            min(asked.get(nodes + 1, status[-1].t_s), status[-1].t_s),
            moved.get(nodes, 0.0),
        )
        for nodes in sorted(joined)
    ]


def _row(run: Run, stage: Stage, status: Sequence[Status], place: Place, before: Row | None) -> Row | None:
    """What was measured with so many nodes; None where the time was too short to say."""
    within = [of for of in status if stage.began_s <= of.t_s <= stage.ended_s]
    found = steady(within)
    if found is None or found.to_s - found.from_s < WINDOW_SECONDS:
        return None
    since = status[0].t_s - status[0].at
    intended = "Intended-" if int(run.parameters["target_per_s"]) else ""
    kind = KINDS[str(run.parameters["workload"])]
    path = place.kept / f"grow-{intended}{kind.upper()}.hdr"
    values, curves = {"operations_per_s": found.rate_per_s}, {}
    if of := latencies(path, found.from_s, client.CURVE, found.to_s):
        values |= {
            f"{kind}_mean_us": of.mean_us,
            f"{kind}_p50_us": of.percentile_us(50.0),
            f"{kind}_p99_us": of.percentile_us(99.0),
        }
        curves[kind] = of.percentiles_us
    if before is not None and before.levels["nodes"] == stage.nodes - 1:
        values["gain"] = found.rate_per_s / before.values["operations_per_s"]
    values |= _joining_values(stage, status, path)
    # The whole stage, its joining included, so that the curves of all stages make one without a gap.
    whole = [of for of in status if (stage.asked_s or stage.began_s) - 1.5 <= of.t_s <= stage.ended_s]
    window = (round(found.from_s + since, 3), round(found.to_s + since, 3))
    marks: tuple[str, ...] = () if found.flat else (f"{NOT_FLAT} within {stage.ended_s - stage.began_s:.0f} s",)
    marks += client.offered_marks(int(run.parameters["target_per_s"]), found.rate_per_s)
    point = {**run.levels, "nodes": stage.nodes}
    late = tuple(mean_latencies(whole, bool(intended)))
    slowest = percentile_over_time(path, 99.0, whole[0].at, whole[-1].at, P99_SECONDS)
    p99 = tuple((round(at + since, 3), of) for at, of in slowest)
    return Row(point, values, window, None, marks, tuple(rates(whole)), late, curves, p99)


def _joining_values(stage: Stage, status: Sequence[Status], histograms: Path) -> dict[str, float]:
    """What clients noticed while the last node joined, and what it was sent; nothing of the first one."""
    if stage.asked_s is None:
        return {}
    values = {"join_s": stage.began_s - stage.asked_s, "moved_bytes": stage.moved_bytes}
    joining = [of for of in status if stage.asked_s <= of.t_s <= stage.began_s]
    if len(joining) > 1:
        first, last = joining[0], joining[-1]
        values["joining_per_s"] = (last.operations - first.operations) / (last.at - first.at)
        if late := latencies(histograms, first.at, client.CURVE, last.at):
            values["joining_p99_us"] = late.percentile_us(99.0)
    return values
