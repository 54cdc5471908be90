"""What was measured, in one form: the points of published campaigns and the rounds of the benches beside the documents.
A change of either form changes this file alone."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import planfile
from harness.benches import About, Bench, Benches, read_bench, read_benches
from harness.errors import HarnessError
from harness.fields import Value
from harness.report.names import varying
from harness.report.publication import read_published
from harness.report.published_pages import best_folders
from harness.results import Point, Results
from harness.sizing.ways import IN_MEMORY, ON_SSD, WAYS, Way, way_of

# What YCSB's workloads and ours do, as parts of all operations.
MIXES: Mapping[str, Mapping[str, float]] = {
    "readonly": {"reads": 1.0},
    "workloadc": {"reads": 1.0},
    "writeonly": {"inserts": 1.0},
    "sensor": {"inserts": 1.0},
    "workloada": {"reads": 0.5, "updates": 0.5},
    "workloadb": {"reads": 0.95, "updates": 0.05},
    "workloade": {"scans": 0.95, "inserts": 0.05},
}
# YCSB's scans are of 1 to 100 rows, each as often.
YCSB_SCAN_ROWS = 50.5
# Axes whose levels an observation has by themselves; what else varies keeps points apart.
COUNTED = ("threads", "depth", "nodes", "replication", "engine")
SINGULAR = {"reads": "read", "inserts": "insert", "updates": "update", "scans": "scan"}


@dataclass(frozen=True)
class Observation:
    """One point that was measured."""

    source: str
    way: Way
    mix: Mapping[str, float]
    nodes: int
    replication: int
    level: str
    # Requests in flight; zero where they came at a rate of their own.
    clients: float
    # Operations/s of each repetition.
    values: tuple[float, ...]
    # By kind, microseconds; without those that were not measured.
    p99_us: Mapping[str, float]
    mean_us: Mapping[str, float]
    cores: int
    record_bytes: float
    rows: float
    # What the records may have of memory, by their bytes.
    memory_part: float
    scan_rows: float
    durability: str
    # Of each node's disk and memory; empty where none.
    limits: Mapping[str, float]
    marks: tuple[str, ...]
    # The levels of all else that its campaign varies: other points of it are comparable where these are the same.
    setting: tuple[tuple[str, Value], ...] = ()
    # Of the processor for each operation, where the node's own time was measured.
    cpu_us: float | None = None
    # Read from the disk and written to it for each operation.
    read_bytes: float | None = None
    written_bytes: float | None = None
    # What the device gave beside it, operations/s.
    device_per_s: float | None = None

    @property
    def per_s(self) -> float:
        """The median of the repetitions."""
        return statistics.median(self.values)

    @property
    def kind(self) -> str | None:
        """The one kind of operation that was done; None of a mix."""
        return next(iter(self.mix)) if len(self.mix) == 1 else None

    @property
    def is_plain(self) -> bool:
        """Whether it shows what one node without limits does alone, of records that are there once."""
        return self.nodes == 1 and self.replication == 1 and not self.limits and self.clients > 0


def read(results: Path, campaigns: Path, documents: Path) -> list[Observation]:
    """Everything that was published: of each campaign its best variant. Raises HarnessError where nothing was."""
    found: list[Observation] = []
    for source, folder in best_folders(results).items():
        campaign = campaigns / f"{folder.parent.name}.toml"
        if not campaign.exists():
            raise HarnessError(
                f"{results / folder} was published of a campaign that {campaigns} does not have: remove it"
            )
        found += of_results(read_published(results / folder, planfile.read(campaign)), source)
    if not found:
        raise HarnessError(f"{results} has no published results: `make publish NAME=load QUICK=1` puts some there")
    return [*found, *of_benches(documents)]


def of_results(results: Results, source: str) -> Iterator[Observation]:
    """The points of a campaign that have a rate and a way to store the data."""
    for point in results.points():
        if observation := _of_point(point, results, source):
            yield observation


def _of_point(point: Point, results: Results, source: str) -> Observation | None:
    levels: dict[str, Any] = {**results.variant.parameters, **point.levels}
    experiment = results.campaign.experiment.name
    in_flight = "depth" in levels and "copy_bytes" not in levels
    rate = point.summary("gets_per_s" if in_flight else "operations_per_s")
    mix = {"reads": 1.0} if in_flight else _mix(levels, experiment)
    # `engines` has one client and rows of its own; its operations are no load.
    if rate is None or mix is None or "threads" not in levels or levels.get("target_per_s"):
        return None
    # A store that did nothing at all has failed, whatever its row says.
    if min(rate.values) <= 0:
        return None
    record = 4096.0 + 8 if in_flight else float(levels.get("fields", 1)) * float(levels.get("field_bytes", 0))
    rows = float(levels.get("pairs" if in_flight else "records", 0))
    memory = _mib(levels) or results.origin.identity.memory_bytes
    filling = experiment == "memory-full" or (levels.get("workload") == "writeonly" and _mib(levels))
    way = way_of(point.store, levels.get("engine"), bool(filling) or rows * record > memory)
    if way is None:
        return None
    names = {"p99_us": {"reads": "p99_us"}} if in_flight else {
        name: {kind: f"{SINGULAR[kind]}_{name}" for kind in mix} for name in ("p99_us", "mean_us")
    }  # fmt: skip
    late = {name: _medians(point, metrics) for name, metrics in names.items()}
    cpu = point.summary("cpu_us_per_get")
    return Observation(
        source=source,
        way=way,
        mix=mix,
        nodes=int(levels.get("nodes", 1)),
        replication=int(levels.get("replication", 1)),
        level=str(levels.get("level", "ONE")),
        clients=float(levels["threads"]) * float(levels.get("depth", 1)),
        values=rate.values,
        p99_us=late.get("p99_us", {}),
        mean_us=late.get("mean_us", {}),
        cores=results.origin.identity.cores,
        record_bytes=record,
        rows=rows,
        memory_part=memory / max(1.0, rows * record),
        scan_rows=YCSB_SCAN_ROWS,
        durability=_durability(levels),
        limits=_limits(levels),
        marks=tuple(point.marks()),
        setting=tuple((axis, point.levels[axis]) for axis in varying(results) if axis not in COUNTED),
        cpu_us=cpu.median if cpu else None,
        device_per_s=point.ceiling_per_s(),
    )


def _mix(levels: Mapping[str, Any], experiment: str) -> Mapping[str, float] | None:
    if experiment == "memory-full":
        return {"inserts": 1.0}
    return MIXES.get(str(levels.get("workload")))


def _mib(levels: Mapping[str, Any]) -> int:
    return int(levels.get("node_memory_mib") or levels.get("memory_mib") or 0) << 20


def _durability(levels: Mapping[str, Any]) -> str:
    if "durability" in levels:
        return str(levels["durability"])
    return "sync" if levels.get("commit_log") == "batch" else "interval"


def _limits(levels: Mapping[str, Any]) -> dict[str, float]:
    """Of each node's disk; one of memory shows in where the data lie. Through one entry node of several less is
    possible than by all of them."""
    limits = {
        name: float(of)
        for name, of in levels.items()
        if name in ("node_reads_per_s", "node_writes_per_s", "node_bytes_per_s") and of
    }
    return limits if levels.get("entry", "token") == "token" else {**limits, "entry": 1.0}


def _medians(point: Point, metrics: Mapping[str, str]) -> dict[str, float]:
    found = {kind: point.summary(metric) for kind, metric in metrics.items()}
    return {kind: of.median for kind, of in found.items() if of is not None}


def of_benches(documents: Path) -> Iterator[Observation]:
    """The benches of one node whose files lie beside the documents, all rounds of one line and workload together."""
    benches = read_benches(documents)
    for name, about in benches.files.items():
        path = documents / name
        if path.exists() and (rows := about.argument("rows")):
            yield from _of_bench(read_bench(path), about, rows, benches)


def _of_bench(bench: Bench, about: About, rows: float, benches: Benches) -> Iterator[Observation]:
    rounds: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    try:
        for row in bench.rows:
            rounds.setdefault((row["workload"], row["line"]), []).append(row)
    except KeyError as error:
        raise HarnessError(f"{bench.name} has no rounds of a bench, one a line ({error!r}): restore it") from error
    node = benches.node
    for (name, line), members in rounds.items():
        workload = benches.workload(name)
        way = _way_of_line(benches.engines.get(line), about.memory_part < 1)
        if not workload.mix or way is None:
            continue
        yield Observation(
            source=bench.name.removesuffix(".json"),
            way=way,
            mix=workload.mix,
            nodes=1,
            replication=1,
            level="ONE",
            clients=0.0 if about.argument("per-second") else float(about.argument("in-flight") or node.in_flight),
            values=tuple(float(row["per_second"]) for row in members),
            # Of a mix the file has the percentile of all operations together.
            p99_us=dict.fromkeys(workload.mix, _median(members, "p99_us")),
            mean_us={},
            cores=node.cores,
            record_bytes=float(node.record_bytes),
            rows=rows,
            memory_part=about.memory_part,
            scan_rows=float(workload.scan_rows),
            durability=node.durability,
            limits={},
            marks=(),
            cpu_us=_median(members, "cpu_us"),
            read_bytes=_median(members, "read_bytes"),
            written_bytes=_median(members, "written_bytes"),
        )


def _way_of_line(engine: str | None, larger: bool) -> Way | None:
    """Lines have a cache or the page cache for all data where these are not larger than memory."""
    place = ON_SSD if larger else IN_MEMORY
    return next(
        (way for way in WAYS if (way.system, way.engine, way.place) == ("cassandra", engine, place)),
        None,
    )


def _median(rows: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.median(float(row[name]) for row in rows)
