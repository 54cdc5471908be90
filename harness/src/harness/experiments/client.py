"""What the experiments over `bin/ycsb` share: how it is called, and how what it prints becomes a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from harness.experiments.base import BadOutputError, Finished, Metric, Place, Row
from harness.fields import Value
from harness.flatness import FLAT_FRACTION, NOT_FLAT, STAYED_FRACTION, WINDOW_SECONDS, Steady, steady
from harness.ycsb_output import latencies, mean_latencies, rates, read_report, read_status

WORKLOADS = (
    "workloada", "workloadb", "workloadc", "workloadd", "workloade", "workloadf",
    "writeonly", "writeheavy", "readheavy", "readonly", "sensor",
)  # fmt: skip
# Those that insert: the next workload needs a fresh table.
INSERTING = ("workloadd", "workloade", "writeonly", "sensor")

# Those of them that also read: of keys that YCSB chooses among all that its operations would have made.
READING_TOO = ("workloadd", "workloade")

# Those that scan.
SCANNING = ("workloade",)

# More operations than any store does in the time given.
ENDLESS = 1_000_000_000
# With inserts beside reads YCSB chooses among all the keys that so many operations would have made, again and again
# until one is there: with too many it finds none.
WITH_INSERTS = 1_000_000

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
    "open one, from the intended start (corrected for coordinated omission)"
)


def launcher(place: Place) -> Path:
    """The command."""
    return place.checkout / "bin" / "ycsb"


def jar(place: Place) -> Path:
    """What the command runs."""
    return place.checkout / "java" / "ycsb" / "target" / "aiodb-ycsb-0.1.0.jar"


def command(
    place: Place,
    phase: str,
    client: str,
    workload: str,
    properties: Iterable[str],
    threads: Value,
    target_per_s: int = 0,
    status_seconds: int = 1,
) -> tuple[str, ...]:
    """One call of `bin/ycsb`."""
    given = [word for of in (*properties, f"status.interval={status_seconds}") for word in ("-p", of)]
    rate = ("-target", str(target_per_s)) if target_per_s else ()
    file = str(place.checkout / "workloads" / workload)
    return (str(launcher(place)), phase, client, "-s", "-P", file, *given, "-threads", str(threads), *rate)


def measuring(place: Place, step: str, workload: str, seconds: float) -> tuple[str, ...]:
    """The properties of a run that is measured for so many seconds, with histograms named after its step."""
    operations = WITH_INSERTS if workload in READING_TOO else ENDLESS
    return (
        f"operationcount={operations}",
        f"maxexecutiontime={int(seconds) + OPENING_SECONDS}",
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


def check(finished: Finished) -> None:
    """Raises BadOutputError where operations failed, or none were done."""
    report = read_report(finished.output)
    if report.operations() == 0:
        raise BadOutputError("the report has no operations: the store was not open in time, or nothing was asked")
    if failed := report.failed():
        raise BadOutputError(f"{failed} operations failed")


def measured_row(
    finished: Finished,
    point: Mapping[str, Value],
    place: Place,
    seconds: float,
    intended: bool,
    marks: Sequence[str] = (),
) -> Row:
    """The row of a run that has been checked: its flat part, or its last windows with a mark."""
    status = read_status(finished.log)
    found = steady(status)
    if found is None:
        raise BadOutputError(f"operations for less than {WINDOW_SECONDS:.0f} s")
    said = [*marks] if found.flat else [*marks, f"{NOT_FLAT} within {seconds:g} s"]
    if missing := read_report(finished.output).returned("NOT_FOUND"):
        said.append(f"{missing} records not found")
    values, curves = _latencies(place, finished.step.name, found, intended)
    since = status[0].t_s - status[0].at
    return Row(
        point,
        {"operations_per_s": found.rate_per_s, **values},
        (round(found.from_s + since, 3), round(found.to_s + since, 3)),
        None,
        tuple(said),
        tuple(rates(status)),
        tuple(mean_latencies(status)),
        curves,
    )


def _latencies(
    place: Place, step: str, found: Steady, intended: bool
) -> tuple[dict[str, float], dict[str, tuple[tuple[float, float], ...]]]:
    values: dict[str, float] = {}
    curves: dict[str, tuple[tuple[float, float], ...]] = {}
    for kind in KINDS:
        path = place.kept / f"{step}-{'Intended-' if intended else ''}{kind}.hdr"
        if of := latencies(path, found.from_s, CURVE):
            name = kind.lower()
            values |= {
                f"{name}_mean_us": of.mean_us,
                f"{name}_p50_us": of.percentile_us(50.0),
                f"{name}_p99_us": of.percentile_us(99.0),
            }
            curves[name] = of.percentiles_us
    return values, curves
