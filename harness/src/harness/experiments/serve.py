"""The server beside Redis: requests per second, latency and processor time of `aiodb serve` and of redis-server."""

import json
import os
import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from harness.experiments.base import Experiment, Notes
from harness.experiments.bench import LOAD_SECONDS_PER_PAIR, BenchRow, comma
from harness.fields import Field
from harness.limits import memory_limits_missing
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step
from harness.stores.programs import installed

# What scripts/bench-serve.sh knows, in the order in which it measures.
DURABLE = ("set_durable", "set_durable_pipelined")
IDLE = "get_idle"
LARGE = ("get_large_64", "get_large_300")
WORKLOADS = ("get", "set", "incr", "get_pipelined", "set_pipelined", *DURABLE, IDLE, *LARGE)
BESIDE_REDIS = tuple(workload for workload in WORKLOADS if workload != IDLE and workload not in LARGE)
BESIDE_ANOTHER = (*BESIDE_REDIS, *LARGE)

# The cores of server and client, and the open files that connections take.
CORES = frozenset({0, 1})
IDLE_FILES = 6000
# Keys of the large workloads, and of each about what its record takes on the disk.
LARGE_KEYS = 2_000_000
LARGE_BYTES = 1_100
# Everything else that is written: logs of both servers, segments that are made before they are needed.
OTHER_BYTES = 3e9

# Seconds: to start and fill servers, which is done for four groups of workloads at most; for a workload with all of its
# requests; for one in little memory, and of that the part that takes as long for any number of requests.
STARTING_SECONDS = 8.0
WORKLOAD_SECONDS = 25.0
LARGE_SECONDS = 60.0
CEILING_SECONDS = 20.0

# Lines of the script's standard error.
ROW = '{"workload":'
CONNECTIONS = "idle"
OURS, REDIS, DEVICE = "aiodb", "redis", "device"


class Serve(Experiment):
    """`scripts/bench-serve.sh`, one round a run: both servers take turns in being first from run to run."""

    name = "serve"
    stores = ("aiodb",)
    phases = ("bench",)
    axes = MappingProxyType({"workload": Field(str, "what clients ask for", choices=WORKLOADS)})
    swept = frozenset({"workload"})
    parameters = MappingProxyType(
        {"scale": Field(int, "what the numbers of requests are divided by", least=1, most=1000, default=1)}
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("ratio", "aiodb by the other", "1", main=True, only={"workload": BESIDE_ANOTHER}),
        Metric("p99_to_p50", "99th percentile by the median", "1", main=True, only={"workload": (IDLE,)}),
        Metric("requests_per_s", "requests, aiodb", "1/s", of_device=True),
        Metric("other_per_s", "requests, the other", "1/s"),
        Metric("p50_us", "latency, median, aiodb", "µs"),
        Metric("p99_us", "latency, 99th percentile, aiodb", "µs"),
        Metric("other_p50_us", "latency, median, the other", "µs"),
        Metric("other_p99_us", "latency, 99th percentile, the other", "µs"),
        Metric("cpu_us", "processor time, aiodb", "µs/request"),
        Metric("other_cpu_us", "processor time, the other", "µs/request"),
        Metric("connection_bytes", "memory of an idle connection", "B"),
    )
    notes = Notes(
        durability=(
            f"`sync` beside appendfsync always in {' and '.join(DURABLE)}, where a reply means that the write is on "
            f"the device; `none` in {' and '.join(LARGE)}, which only read; `interval:1000` beside appendfsync "
            "everysec in all others"
        ),
        latency="closed loop: each connection of redis-benchmark waits for its replies before it asks again",
        method=(
            "Both servers run on one core, and are asked one after the other by redis-benchmark on another core. From "
            "run to run they take turns in being first. `×16`: that many requests before a connection waits.",
            "The other is the redis-server that is installed, with an append-only file. Where data are four times the "
            "memory it is the device: the faster of fio and a minimal loop, with as many reads in flight as there are "
            "connections. Beside 5,000 idle connections there is none.",
            "Processor time is that of the server's process, in steps of 10 ms.",
        ),
    )

    def obstacle(self, run: Run) -> str | None:
        if not os.sched_getaffinity(0) >= CORES:
            return "server and client need a core each, 0 and 1"
        workloads = set(run.swept["workload"])
        if IDLE in workloads and os.geteuid() and resource.getrlimit(resource.RLIMIT_NOFILE)[1] < IDLE_FILES:
            return f"{IDLE} needs {IDLE_FILES} open files, which only root may allow itself here"
        if workloads & set(LARGE):
            return "only root may limit the memory of a server" if os.geteuid() else memory_limits_missing()
        return None

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        scripts = (place.checkout / "scripts" / name for name in ("bench-serve.sh", "with-memory.sh"))
        return (place.aiodb, installed("redis-server"), installed("redis-benchmark"), *scripts)

    def packages(self, run: Run) -> Sequence[str]:
        return ("redis-server", "redis-tools", "util-linux", *(("fio",) if _large(run) else ()))

    def expected_seconds(self, run: Run) -> float:
        scale, large = int(run.parameters["scale"]), _large(run)
        others = len(run.swept["workload"]) - large
        # The server is loaded by a client; beside it, each workload loads a store to ask the device.
        loads = LARGE_KEYS / scale * LOAD_SECONDS_PER_PAIR * (2 + large) if large else 0.0
        asking = others * WORKLOAD_SECONDS / scale
        asking += large * (CEILING_SECONDS + (LARGE_SECONDS - CEILING_SECONDS) / scale)
        return 4 * STARTING_SECONDS + asking + loads

    def needed_bytes(self, run: Run) -> float:
        return OTHER_BYTES + (2 * LARGE_KEYS / int(run.parameters["scale"]) * LARGE_BYTES if _large(run) else 0.0)

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        command = (
            "env", f"AIODB={place.aiodb}",
            str(place.checkout / "scripts" / "bench-serve.sh"),
            "--rounds=1",
            f"--first-round={run.repetition}",
            f"--workloads={comma(run.swept['workload'])}",
            f"--scale={run.parameters['scale']}",
            f"--dir={place.scratch}",
            f"--out={place.kept / 'server.json'}",
        )  # fmt: skip
        return [Step("bench", command, 600 + 5 * self.expected_seconds(run), tuple(run.points()))]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        lines, windows = _measured(finished)
        connections = lines.get((CONNECTIONS, OURS))
        rows = []
        for point in run.points():
            workload = str(point["workload"])
            own = lines.get((workload, OURS))
            other = connections if workload == IDLE else lines.get((workload, DEVICE if workload in LARGE else REDIS))
            if own is not None and other is not None:
                ceiling = other.rate("per_second") if workload in LARGE else None
                rows.append(Row(point, _values(workload, own, other), windows[workload], ceiling))
        return rows


def connections(workload: str) -> str:
    """How many connections one of the large workloads has: its name ends so."""
    return workload.rpartition("_")[2]


def _large(run: Run) -> int:
    """How many of the workloads have less memory than data."""
    return sum(workload in LARGE for workload in run.swept["workload"])


def _measured(finished: Finished) -> tuple[Mapping[tuple[str, str], BenchRow], Mapping[str, tuple[float, float]]]:
    """What the script printed as each server was done with each workload, and when the servers were asked: the device
    is not within that."""
    lines: dict[tuple[str, str], BenchRow] = {}
    windows: dict[str, tuple[float, float]] = {}
    before = finished.began_s
    for seconds, line in finished.log:
        if line.startswith(ROW):
            row = _row(line)
            workload, whose = str(row.values.get("workload")), str(row.values.get("line"))
            lines[workload, whose] = row
            if whose != DEVICE:
                windows[workload] = windows.get(workload, (before, seconds))[0], seconds
        before = seconds
    if not lines:
        raise BadOutputError("scripts/bench-serve.sh printed no result")
    return lines, windows


def _row(line: str) -> BenchRow:
    try:
        return BenchRow(json.loads(line))
    except json.JSONDecodeError as error:
        raise BadOutputError(f"{line!r} is no JSON: {error}") from error


def _values(workload: str, own: BenchRow, other: BenchRow) -> dict[str, float]:
    """The values of a workload; `other` is redis-server, the device, or what idle connections take."""
    rate, p50_us, p99_us = own.rate("per_second"), own.rate("p50_us"), own.rate("p99_us")
    # Few requests may take less than a step of the kernel's count.
    values = {"requests_per_s": rate, "p50_us": p50_us, "p99_us": p99_us, "cpu_us": own.number("cpu_us")}
    if workload == IDLE:
        return values | {"p99_to_p50": p99_us / p50_us, "connection_bytes": other.number("connection_bytes")}
    values |= {"other_per_s": other.rate("per_second"), "ratio": rate / other.rate("per_second")}
    if workload not in LARGE:
        values |= {"other_p50_us": other.rate("p50_us"), "other_p99_us": other.rate("p99_us")}
        values["other_cpu_us"] = other.number("cpu_us")
    return values
