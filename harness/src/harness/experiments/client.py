"""What the experiments over `bin/ycsb` share: how it is called, and how what it prints becomes a row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from harness.fields import Value
from harness.flatness import FLAT_FRACTION, NOT_FLAT, STAYED_FRACTION, WINDOW_SECONDS, steady
from harness.rows import Metric, Row
from harness.steps import BadOutputError, Finished, Place
from harness.ycsb_output import latencies, mean_latencies, rates, read_report, read_status

WORKLOADS = (
    "workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf",
    "writeonly", "writeheavy", "readheavy", "readonly", "sensor",
)  # fmt: skip
# Those that insert: the next workload needs a fresh table.
INSERTING = ("workloadd", "workloade", "writeonly", "sensor")

# Those of them that also read.
READING_TOO = ("workloadd", "workloade")

# Those that scan.
SCANNING = ("workloade",)

# The part of its operations that write, where a workload does not only read.
WRITTEN_PARTS = MappingProxyType(
    {
        "workloada": 0.5, "workloadb": 0.05, "workloadd": 0.05, "workloade": 0.05, "workloadf": 0.5,
        "writeonly": 1.0, "writeheavy": 0.9, "readheavy": 0.1, "sensor": 1.0,
    }
)  # fmt: skip

# More operations than any store does in the time given.
ENDLESS = 1_000_000_000
# Where a workload scans and inserts, YCSB chooses among all the keys that its operations would have made, again and
# again until one is there: of ENDLESS ones it would find none. As many per second are more than any store has done.
SCANS_PER_S = 30_000

# Below this part of what was offered to it, a store was offered more than it can do.
OFFERED_FRACTION = 0.98

# What the fastest store has been seen to write where records are large. Only for the estimate of the room that a run
# needs.
_WRITTEN_BYTES_PER_S = 150e6
# What a record takes beside its fields, key included.
_RECORD_BYTES = 64
# Pages that are half full, and what compaction writes again.
_LOADED_TIMES = 2

# From the start of the virtual machine until the store is open, at most; not measured.
OPENING_SECONDS = 5

KINDS = ("READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE")
CURVE = (0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99)

METRICS: tuple[Metric, ...] = (
    Metric("operations_per_s", "throughput", "1/s", main=True),
    *(Metric(f"{kind.lower()}_mean_us", f"{kind.lower()}, mean", "µs") for kind in KINDS),
    *(Metric(f"{kind.lower()}_p50_us", f"{kind.lower()}, median", "µs") for kind in KINDS),
    *(Metric(f"{kind.lower()}_p99_us", f"{kind.lower()}, 99th percentile", "µs") for kind in KINDS),
)

FLATNESS = (
    f"A point counts once its throughput is flat: two windows of {WINDOW_SECONDS:.0f} s in a row within "
    f"{FLAT_FRACTION:.0%}, at a level within {STAYED_FRACTION:.0%} of which the last two windows are as well. From "
    "there on to the end it is measured, percentiles included. Where that does not happen within the seconds given, "
    "the point is marked `not flat` and the last two windows are shown."
)
LOOP = (
    "with target_per_s = 0 a closed loop: each thread waits for its answer before it asks again; otherwise an "
    "open one, from the intended start (corrected for coordinated omission), over time as well"
)


def launcher(place: Place) -> Path:
    """The command."""
    return place.checkout / "bin" / "ycsb"


def jar(place: Place) -> Path:
    """What the command runs."""
    return place.checkout / "java" / "ycsb" / "target" / "aiodb-ycsb-0.1.0.jar"


def programs(place: Place, workloads: Iterable[str]) -> Sequence[Path]:
    """The files that calls with these workloads depend on."""
    return [launcher(place), jar(place), *(place.checkout / "workloads" / workload for workload in workloads)]


def command(
    place: Place,
    phase: str,
    client: str,
    workload: str,
    properties: Iterable[str],
    threads: Value,
    target_per_s: int = 0,
) -> tuple[str, ...]:
    """One call of `bin/ycsb`."""
    given = [word for of in (*properties, "status.interval=1") for word in ("-p", of)]
    rate = ("-target", str(target_per_s)) if target_per_s else ()
    file = str(place.checkout / "workloads" / workload)
    return (str(launcher(place)), phase, client, "-s", "-P", file, *given, "-threads", str(threads), *rate)


def measuring(place: Place, step: str, workload: str, seconds: float, operations: int = 0) -> tuple[str, ...]:
    """The properties of a run that is measured for so many seconds, or until so many operations are done, with
    histograms named after its step."""
    whole_s = int(seconds) + OPENING_SECONDS
    endless = SCANS_PER_S * whole_s if workload in SCANNING else ENDLESS
    return (
        f"operationcount={operations or endless}",
        f"maxexecutiontime={whole_s}",
        *histograms(place, step),
    )


def histograms(place: Place, step: str) -> tuple[str, ...]:
    """The properties that make YCSB write histograms named after a step."""
    return (
        "measurementtype=hdrhistogram",
        "hdrhistogram.fileoutput=true",
        f"hdrhistogram.output.path={place.kept / step}-",
        "measurement.interval=both",
    )


def loaded_bytes(parameters: Mapping[str, Value]) -> float:
    """About what the records of a table that was loaded take on the disk."""
    return _LOADED_TIMES * int(parameters["records"]) * _record_bytes(parameters)


def written_bytes(parameters: Mapping[str, Value], seconds: float, per_s: float) -> float:
    """About what is on the disk after so many seconds of a workload that writes as many records as a store can."""
    return seconds * min(per_s * _record_bytes(parameters), _WRITTEN_BYTES_PER_S)


def _record_bytes(parameters: Mapping[str, Value]) -> int:
    return _RECORD_BYTES + int(parameters["fields"]) * int(parameters["field_bytes"])


def offered_per_s(command: Sequence[str]) -> int:
    """The rate at which a call offers operations; 0 where it offers as many as are done."""
    return int(command[command.index("-target") + 1]) if "-target" in command else 0


def offered_marks(offered: float, done: float) -> tuple[str, ...]:
    """The mark of a row that was offered more than it did: its latencies grow for as long as it is measured."""
    return (f"offered {offered:,.0f}/s, did {done:,.0f}/s",) if done < OFFERED_FRACTION * offered else ()


def check(finished: Finished) -> None:
    """Raises BadOutputError where operations failed or found nothing, or none were done.

    No read misses a record rightly: YCSB asks for what was loaded, and for inserts once they are acknowledged; where an
    insert is acknowledged before all replicas have it, no workload reads it. Yet YCSB counts a read that finds nothing
    as an operation, and it costs less than one that does: a store that loses records would seem to be faster.
    """
    report = read_report(finished.output)
    if report.operations() == 0:
        raise BadOutputError("the report has no operations: the store was not open in time, or nothing was asked")
    if failed := report.failed():
        raise BadOutputError(f"{failed} operations failed")
    if missing := report.returned("NOT_FOUND"):
        raise BadOutputError(f"{missing} records were not found, though each had been written before")


def execution_s(finished: Finished, operations: int) -> float:
    """How long a run took that was to do so many operations; raises BadOutputError where it did fewer."""
    report = read_report(finished.output)
    milliseconds = report.sections.get("OVERALL", {}).get("RunTime(ms)", 0.0)
    if milliseconds <= 0 or report.operations() < operations:
        raise BadOutputError(
            f"{report.operations():,} operations in {milliseconds / 1000:.0f} s, and {operations:,} were asked for"
        )
    return milliseconds / 1000


def measured_row(finished: Finished, point: Mapping[str, Value], place: Place, seconds: float) -> Row:
    """The row of a run that has been checked: its flat part, or its last windows with a mark. Where operations were
    offered at a rate, latencies count from the moment at which each should have begun."""
    status = read_status(finished.log)
    found = steady(status)
    if found is None:
        raise BadOutputError(f"operations for less than {WINDOW_SECONDS:.0f} s")
    offered = offered_per_s(finished.step.command)
    said = [] if found.flat else [f"{NOT_FLAT} within {seconds:g} s"]
    said += offered_marks(offered, found.rate_per_s)
    values, curves = latencies_of(place, finished.step.name, found.from_s, math.inf, bool(offered))
    since = status[0].t_s - status[0].at
    return Row(
        point,
        {"operations_per_s": found.rate_per_s, **values},
        (round(found.from_s + since, 3), round(found.to_s + since, 3)),
        None,
        tuple(said),
        tuple(rates(status)),
        tuple(mean_latencies(status, bool(offered))),
        curves,
    )


def latencies_of(
    place: Place, step: str, from_s: float, until_s: float, intended: bool = False
) -> tuple[dict[str, float], dict[str, tuple[tuple[float, float], ...]]]:
    """What the histograms of a step say of a time, in seconds since 1970: values, and curves by kind of operation."""
    values: dict[str, float] = {}
    curves: dict[str, tuple[tuple[float, float], ...]] = {}
    for kind in KINDS:
        path = place.kept / f"{step}-{'Intended-' if intended else ''}{kind}.hdr"
        if of := latencies(path, from_s, CURVE, until_s):
            name = kind.lower()
            values |= {
                f"{name}_mean_us": of.mean_us,
                f"{name}_p50_us": of.percentile_us(50.0),
                f"{name}_p99_us": of.percentile_us(99.0),
            }
            curves[name] = of.percentiles_us
    return values, curves
