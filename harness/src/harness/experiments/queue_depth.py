"""The AIODB paper's figure 2: gets per second against the number of gets in flight, beside what the device gives."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

from harness.experiments.base import Experiment, Notes
from harness.experiments.bench import LOAD_SECONDS_PER_PAIR, bench_rows, comma, store_bytes, windows_of_lines
from harness.fields import Field
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import Finished, Place, Step


class QueueDepth(Experiment):
    """`aiodb bench queue-depth`: one store for all depths, each depth in rounds that take turns with the device."""

    name = "queue-depth"
    stores = ("aiodb",)
    phases = ("bench",)
    axes = MappingProxyType(
        {
            "index": Field(str, "the index of the store", choices=("lsm", "lmdb", "hash")),
            "backend": Field(str, "how the device is asked", choices=("uring", "libaio", "threads")),
            "threads": Field(int, "threads, each with a reader of its own", least=1, most=64),
            "depth": Field(int, "gets in flight per thread", least=1, most=4096),
        }
    )
    swept = frozenset({"depth"})
    parameters = MappingProxyType(
        {
            "pairs": Field(int, "pairs of 8 and 4096 bytes", least=1000, most=100_000_000, default=1_000_000),
            "round_ms": Field(int, "length of a round", least=10, most=60_000, default=1000),
            "max_rounds": Field(int, "rounds per depth at most", least=2, most=1000, default=40),
            "max_seconds": Field(int, "seconds per depth at most", least=1, most=3600, default=90),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("gets_per_s", "gets", "1/s", main=True),
        Metric("ratio", "of the device's rate", "1", main=True),
        Metric("p50_us", "latency, median", "µs"),
        Metric("p99_us", "latency, 99th percentile", "µs"),
        Metric("cpu_us_per_get", "processor time per get", "µs"),
    )
    notes = Notes(
        durability="does not apply: only gets are measured; the store was loaded with `none` and brought up to date",
        latency="closed loop: as many gets in flight as the depth says, from submit to poll",
        method=(
            "Engine and bare device take turns within each run: the device's rate is that of the faster of fio and a "
            "minimal loop, at the same depth and block size, on the same files.",
            "Every value is checked. The cache of values is off.",
        ),
    )

    def packages(self, run: Run) -> Sequence[str]:
        return ("fio",)

    def expected_seconds(self, run: Run) -> float:
        loading = 2 * int(run.parameters["pairs"]) * LOAD_SECONDS_PER_PAIR
        return loading + len(run.swept["depth"]) * float(run.parameters["max_seconds"]) * 1.5 + 3

    def needed_bytes(self, run: Run) -> float:
        return store_bytes(run.parameters["pairs"])

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        command = (
            str(place.aiodb), "bench", "queue-depth", "--json",
            "--dir", str(place.scratch),
            "--index", str(run.levels["index"]),
            "--backends", str(run.levels["backend"]),
            "--threads", str(run.levels["threads"]),
            "--depths", comma(run.swept["depth"]),
            "--pairs", str(run.parameters["pairs"]),
            "--round-ms", str(run.parameters["round_ms"]),
            "--max-rounds", str(run.parameters["max_rounds"]),
            "--max-seconds", str(run.parameters["max_seconds"]),
        )  # fmt: skip
        return [Step("bench", command, 600 + 5 * self.expected_seconds(run), tuple(run.points()))]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        windows = windows_of_lines(finished, f"bench: {run.levels['index']} {run.levels['backend']} threads=")
        rows = []
        for number, row in enumerate(bench_rows(finished.output, "queue-depth")):
            values = {name: row.rate(name) for name in ("gets_per_s", "p50_us", "p99_us", "cpu_us_per_get")}
            values |= row.optional("ratio")
            window = windows[number] if number < len(windows) else (finished.began_s, finished.ended_s)
            rows.append(
                Row(
                    {**run.levels, "depth": int(row.number("depth_per_thread"))},
                    values,
                    window,
                    row.optional("ceiling_reads_per_s").get("ceiling_reads_per_s"),
                    # The program says which backend it really used.
                    () if row.values.get("backend") == run.levels["backend"] else ("another backend",),
                )
            )
        return rows
