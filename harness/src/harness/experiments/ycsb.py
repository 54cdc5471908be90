"""YCSB's workloads over stores: each run loads a fresh store and measures one workload after the other on it."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments.base import BadOutputError, Experiment, Finished, Metric, Notes, Place, Row, Service, Step
from harness.fields import Field, Value
from harness.flatness import FLAT_FRACTION, WINDOW_SECONDS, steady
from harness.plan import Run
from harness.report.figures import Figure, Series
from harness.results import Results, grouped
from harness.stores.base import Store
from harness.stores.registry import STORES
from harness.ycsb_output import percentiles_us, rates, read_report, read_status

WORKLOADS = (
    "workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf",
    "writeonly", "writeheavy", "readheavy", "readonly",
)  # fmt: skip
# Those that insert: the next workload needs a fresh table.
INSERTING = ("workloadd", "workloade", "writeonly")

# More operations than any store does in the time given.
ENDLESS = 1_000_000_000
# With inserts YCSB chooses among all the keys that so many operations would have made, again and again until one is
# there: with too many it finds none.
WITH_INSERTS = 1_000_000

# From the start of the virtual machine until the store is open, at most; not measured.
OPENING_SECONDS = 5

KINDS = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
PERCENTS = (50.0, 99.0)


class Ycsb(Experiment):
    """`bin/ycsb load`, and `bin/ycsb run` for each workload."""

    name = "ycsb"
    stores = tuple(STORES)
    phases = ("load", "run")
    axes = MappingProxyType(
        {
            "threads": Field(int, "YCSB's client threads", least=1, most=1024),
            "workload": Field(str, "a file of workloads/", choices=WORKLOADS),
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
            "durability": Field(str, "of every write", choices=("sync", "interval", "none")),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("operations_per_s", "throughput", "1/s", main=True),
        *(Metric(f"{kind.lower()}_p99_us", f"{kind.lower()}, 99th percentile", "µs") for kind in KINDS),
        *(Metric(f"{kind.lower()}_p50_us", f"{kind.lower()}, median", "µs") for kind in KINDS),
    )
    notes = Notes(
        durability="as the parameter says, for loading and for measuring; LMDB's writes are always `sync`",
        latency=(
            "with target_per_s = 0 a closed loop: each thread waits for its answer before it asks again; otherwise an "
            "open one, from the intended start (corrected for coordinated omission)"
        ),
        method=(
            f"A point counts once its throughput is flat: two windows of {WINDOW_SECONDS:.0f} s in a row within "
            f"{FLAT_FRACTION:.0%}. From there on to the end it is measured, percentiles included. Where that does not "
            "happen within the seconds given, the point is marked `not flat` and the last two windows are shown.",
            "A record is one row: with several fields an update reads it and writes all of it. Workloads that insert "
            "are followed by a fresh table.",
            "The data fit the memory of the host. LMDB and RocksDB read them from the page cache there; aiodb reads "
            "the device, as it does with data of any size.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        if run.phases != self.phases:
            return "`phases` must be load and run: a fresh store has nothing to run on"
        return None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        needed = [Path(shutil.which(program) or program) for program in STORES[run.store].programs()]
        return [_launcher(place), _jar(place), *needed]

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return STORES[run.store].services(place.scratch, str(run.parameters["durability"]))

    def expected_seconds(self, run: Run) -> float:
        workloads = run.swept["workload"]
        measuring = len(workloads) * (float(run.parameters["seconds"]) + OPENING_SECONDS)
        return measuring + len(_loads(workloads)) * (int(run.parameters["records"]) / 20_000 + OPENING_SECONDS)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        steps = []
        loads = _loads(run.swept["workload"])
        for point in run.points():
            workload = str(point["workload"])
            table = max(number for number in loads if number <= run.swept["workload"].index(workload))
            shared = (*_properties(run, place), f"table=records{table}")
            if run.swept["workload"][table] == workload:
                limit = 600 + int(run.parameters["records"]) / 200
                steps.append(Step(f"load-{table}", _command("load", run, place, workload, shared), limit))
            operations = WITH_INSERTS if workload in INSERTING else ENDLESS
            measuring = (
                *shared,
                f"operationcount={operations}",
                f"maxexecutiontime={int(run.parameters['seconds']) + OPENING_SECONDS}",
                "measurementtype=hdrhistogram",
                "hdrhistogram.fileoutput=true",
                f"hdrhistogram.output.path={place.kept / workload}-",
                "measurement.interval=both",
            )
            limit = 300 + 2 * float(run.parameters["seconds"])
            steps.append(Step(workload, _command("run", run, place, workload, measuring), limit, (point,)))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        report = read_report(finished.output)
        if report.operations() == 0:
            raise BadOutputError("the report has no operations: the store was not open in time, or nothing was asked")
        if failed := report.failed():
            raise BadOutputError(f"{failed} operations failed")
        if not finished.step.points:
            return ()
        status = read_status(finished.log)
        measured = steady(status)
        if measured is None:
            raise BadOutputError(f"operations for less than {WINDOW_SECONDS:.0f} s")
        values = {"operations_per_s": measured.rate_per_s}
        intended = "Intended-" if run.parameters["target_per_s"] else ""
        for kind in KINDS:
            path = place.kept / f"{finished.step.name}-{intended}{kind}.hdr"
            if path.exists() and (found := percentiles_us(path, measured.from_s, PERCENTS)):
                values |= dict(zip((f"{kind.lower()}_p50_us", f"{kind.lower()}_p99_us"), found, strict=True))
        since = status[0].t_s - status[0].at
        window = (round(measured.from_s + since, 3), round(measured.to_s + since, 3))
        marks = [] if measured.flat else [f"not flat within {run.parameters['seconds']} s"]
        if missing := report.returned("NOT_FOUND"):
            marks.append(f"{missing} records not found")
        (point,) = finished.step.points
        return [Row(point, values, window, None, tuple(marks), tuple(rates(status)))]

    def figures(self, results: Results) -> Sequence[Figure]:
        figures = [_bars(results, "operations_per_s", "Throughput", "operations/s")]
        for kind in KINDS:
            metric = f"{kind.lower()}_p99_us"
            if any(point.summary(metric) for point in results.points()):
                figures.append(_bars(results, metric, f"Latency of {kind.lower()}, 99th percentile", "µs", y_log=True))
        return figures


def _bars(results: Results, metric: str, title: str, unit: str, y_log: bool = False) -> Figure:
    """A group of bars for each workload, a bar in it for each store and number of threads."""
    workloads = [str(workload) for workload in results.variant.axes["workload"]]
    series = []
    named = grouped(results.points(), lambda point: f"{point.store}, {point.levels['threads']} threads")
    for name, points in named.items():
        marks = []
        for point in points:
            if summary := point.summary(metric):
                half = summary.half_width or 0.0
                ends = (summary.median - half, summary.median + half)
                marks.append((float(workloads.index(str(point.levels["workload"]))), summary.median, *ends))
        series.append(Series(name, tuple(marks)))
    note = "Points that are not flat are shown all the same: the table marks them."
    names = tuple(workload.removeprefix("workload").upper() for workload in workloads)
    return Figure(title, note, "", unit, tuple(series), y_log=y_log, categories=names)


def _loads(workloads: Sequence[Value]) -> list[int]:
    """The positions of workloads before which a table is loaded: the first, and each after one that inserts."""
    return [number for number in range(len(workloads)) if number == 0 or workloads[number - 1] in INSERTING]


def _properties(run: Run, place: Place) -> tuple[str, ...]:
    store: Store = STORES[run.store]
    return (
        *store.properties(place.scratch / "store", str(run.parameters["durability"])),
        f"recordcount={run.parameters['records']}",
        f"fieldcount={run.parameters['fields']}",
        f"fieldlength={run.parameters['field_bytes']}",
    )


def _command(phase: str, run: Run, place: Place, workload: str, properties: Sequence[str]) -> tuple[str, ...]:
    given = [word for of in (*properties, "status.interval=1") for word in ("-p", of)]
    target = int(run.parameters["target_per_s"])
    rate = ("-target", str(target)) if target and phase == "run" else ()
    launcher, threads = str(_launcher(place)), str(run.levels["threads"])
    file = str(place.checkout / "workloads" / workload)
    return (launcher, phase, run.store, "-s", "-P", file, *given, "-threads", threads, *rate)


def _launcher(place: Place) -> Path:
    return place.checkout / "bin" / "ycsb"


def _jar(place: Place) -> Path:
    return place.checkout / "java" / "ycsb" / "target" / "aiodb-ycsb-0.1.0.jar"
