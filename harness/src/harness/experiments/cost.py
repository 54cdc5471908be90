"""The AIODB paper's purpose in money: what a requirement costs with all data in memory and with values on SSD."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

from harness.experiments.base import Experiment, Notes
from harness.experiments.bench import (
    LOAD_SECONDS_PER_PAIR,
    BenchRow,
    bench_rows,
    comma,
    lmdb_bytes,
    store_bytes,
)
from harness.fields import Field
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import Finished, Place, Step

# The rates that the costs follow from, measured in each run anew.
DEPTHS = "64,256"
COPY_BYTES = "0,1024,4096"
DEPTH_SECONDS = 6


class Cost(Experiment):
    """`aiodb bench queue-depth` and `bench copy-size`, then `bench cost` on their results: so the spread of the rates
    shows as a spread of the costs."""

    name = "cost"
    stores = ("aiodb",)
    phases = ("bench",)
    axes = MappingProxyType(
        {
            "index": Field(str, "the index of our store", choices=("lsm", "lmdb", "hash")),
            "value_bytes": Field(int, "bytes of a value", least=1, most=1 << 30),
            "gets_per_s": Field(float, "the gets per second that are wanted", least=1, most=1e9),
            "data_gb": Field(float, "keys and values in gigabytes", least=0.001, most=1e9),
        }
    )
    swept = frozenset({"value_bytes", "gets_per_s", "data_gb"})
    parameters = MappingProxyType(
        {
            "pairs": Field(int, "pairs in the stores measured", least=1000, most=2_000_000, default=1_000_000),
            "rounds": Field(int, "rounds of the gets from memory", least=2, most=1000, default=5),
            "dram_usd_per_gb": Field(float, "price of memory", least=0.0001, most=1e6),
            "ssd_usd_per_gb": Field(float, "price of SSDs", least=0.0001, most=1e6),
            "node_usd": Field(float, "price of a node without either", least=0, most=1e9),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("memory_usd", "all in memory", "USD"),
        Metric("ssd_usd", "values on SSD", "USD"),
        Metric("ssd_to_memory_usd", "SSD by memory", "1", main=True),
        Metric("memory_nodes", "nodes, in memory", "1"),
        Metric("ssd_nodes", "nodes, on SSD", "1"),
    )
    notes = Notes(
        durability="does not apply: only gets are measured",
        latency="not measured",
        method=(
            "Prices are given by the campaign file, rates are measured in each run. `aiodb bench cost --help` lists "
            "what is assumed of a node.",
        ),
    )

    def packages(self, run: Run) -> Sequence[str]:
        return ("fio",)

    def expected_seconds(self, run: Run) -> float:
        return 5 * int(run.parameters["pairs"]) * LOAD_SECONDS_PER_PAIR + 25 + 9 * float(run.parameters["rounds"])

    def needed_bytes(self, run: Run) -> float:
        return store_bytes(run.parameters["pairs"]) + lmdb_bytes(run.parameters["pairs"])

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        bench = (str(place.aiodb), "bench")
        results = place.kept / "results"
        measured = ("--json", "--dir", str(place.scratch), "--index", str(run.levels["index"]),
                    "--pairs", str(run.parameters["pairs"]))  # fmt: skip
        depth = (
            "--depths",
            DEPTHS,
            "--backends",
            "uring",
            "--threads",
            "1",
            "--max-seconds",
            str(DEPTH_SECONDS),
        )
        copies = ("--copy-bytes", COPY_BYTES, "--depths", "64", "--rounds", str(run.parameters["rounds"]))
        # The results go where `bench cost` looks for them: results/ beside a report.
        report = ("--report", str(place.kept / "bench.html"))
        wanted = (
            "--json", "--results", str(results), "--index", str(run.levels["index"]),
            "--data-gb", comma(run.swept["data_gb"]),
            "--gets-per-s", comma(run.swept["gets_per_s"]),
            "--value-bytes", comma(run.swept["value_bytes"]),
            "--dram-usd-per-gb", str(run.parameters["dram_usd_per_gb"]),
            "--ssd-usd-per-gb", str(run.parameters["ssd_usd_per_gb"]),
            "--node-usd", str(run.parameters["node_usd"]),
        )  # fmt: skip
        limit = 600 + 5 * self.expected_seconds(run)
        return [
            Step("queue-depth", (*bench, "queue-depth", *measured, *depth, *report), limit),
            Step("copy-size", (*bench, "copy-size", *measured, *copies, *report), limit),
            Step("cost", (*bench, "cost", *wanted), 60, tuple(run.points())),
        ]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.step.name != "cost":
            bench_rows(finished.output, finished.step.name)
            return ()
        # The rates that the costs follow from were measured by the steps before: what disturbed them counts.
        window = (0.0, finished.ended_s)
        found = {_identity(row): row for row in bench_rows(finished.output, "cost")}
        rows = []
        for point in run.points():
            wanted = tuple(float(point[axis]) for axis in ("value_bytes", "gets_per_s", "data_gb"))
            if row := found.get(wanted):
                rows.append(Row(point, {metric.name: row.rate(metric.name) for metric in self.metrics}, window))
        return rows


def _identity(row: BenchRow) -> tuple[float, ...]:
    """Bytes of a value, gets per second, gigabytes: rounded as a person writes them."""
    return row.number("value_bytes"), row.number("gets_per_s"), round(row.number("data_bytes") / 1e9, 6)
