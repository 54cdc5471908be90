"""The AIODB paper's figure 1: gets per second of LMDB in memory against the bytes copied out, beside gets from the
device. Where the curves cross, memory is no faster than an SSD."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import ClassVar

import psutil

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
from harness.steps import BadOutputError, Finished, Place, Step

# Seconds for the device's own rate at each depth.
CEILING_SECONDS = 4
MEMORY = "lmdb in memory"


class CopySize(Experiment):
    """`aiodb bench copy-size`, after a short `bench queue-depth` that says what the device gives at the same depths."""

    name = "copy-size"
    stores = ("aiodb",)
    phases = ("bench",)
    axes = MappingProxyType(
        {
            "index": Field(str, "the index of our store", choices=("lsm", "lmdb", "hash")),
            "depth": Field(int, "gets in flight of our store, from one thread", least=1, most=4096),
            "copy_bytes": Field(int, "bytes copied from each value", least=0, most=4096),
        }
    )
    swept = frozenset({"depth", "copy_bytes"})
    parameters = MappingProxyType(
        {
            "pairs": Field(int, "pairs of 8 and 4096 bytes", least=1000, most=2_000_000, default=1_000_000),
            "round_ms": Field(int, "length of a round", least=10, most=60_000, default=1000),
            "rounds": Field(int, "rounds; all series take turns", least=2, most=1000, default=5),
        }
    )
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("lmdb_gets_per_s", "gets, LMDB in memory", "1/s", main=True),
        Metric("gets_per_s", "gets, aiodb from the device", "1/s", main=True, of_device=True),
        Metric("ratio", "aiodb by LMDB", "1"),
    )
    notes = Notes(
        durability="does not apply: only gets are measured",
        latency="not measured",
        method=(
            "One thread each; every page of LMDB was read before. With 0 bytes copied the value is not touched.",
            "The device's rate is from a `bench queue-depth` at the same depths just before.",
        ),
    )

    def refusal(self, run: Run) -> str | None:
        needed = lmdb_bytes(run.parameters["pairs"])
        if needed > psutil.virtual_memory().total * 0.8:
            return f"`pairs` take {needed / 1e9:.1f} GB of memory in LMDB, which this machine has not"
        return None

    def packages(self, run: Run) -> Sequence[str]:
        return ("fio",)

    def expected_seconds(self, run: Run) -> float:
        loading = 3 * int(run.parameters["pairs"]) * LOAD_SECONDS_PER_PAIR
        series = len(run.swept["copy_bytes"]) * (1 + len(run.swept["depth"]))
        rounds = series * float(run.parameters["rounds"]) * float(run.parameters["round_ms"]) / 1000
        return loading + rounds * 1.2 + len(run.swept["depth"]) * CEILING_SECONDS * 1.5 + 5

    def needed_bytes(self, run: Run) -> float:
        return store_bytes(run.parameters["pairs"]) + lmdb_bytes(run.parameters["pairs"])

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        depths = comma(run.swept["depth"])
        bench = (str(place.aiodb), "bench")
        shared = ("--json", "--dir", str(place.scratch), "--index", str(run.levels["index"]),
                  "--depths", depths, "--pairs", str(run.parameters["pairs"]))  # fmt: skip
        limit = 600 + 5 * self.expected_seconds(run)
        ceiling = (
            "--backends",
            "uring",
            "--threads",
            "1",
            "--round-ms",
            "250",
            "--max-seconds",
            str(CEILING_SECONDS),
        )
        copies = ("--copy-bytes", comma(run.swept["copy_bytes"]), "--round-ms", str(run.parameters["round_ms"]),
                  "--rounds", str(run.parameters["rounds"]))  # fmt: skip
        return [
            Step("ceiling", (*bench, "queue-depth", *shared, *ceiling), limit),
            Step("bench", (*bench, "copy-size", *shared, *copies), limit, tuple(run.points())),
        ]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.step.name == "ceiling":
            _ceilings(finished.output)
            return ()
        ceilings = _ceilings((place.kept / "ceiling.out").read_text(encoding="utf-8"))
        rates = {_identity(row): row.rate("gets_per_s") for row in bench_rows(finished.output, "copy-size")}
        window = (finished.began_s, finished.ended_s)
        rows = []
        for point in run.points():
            depth, copied = int(point["depth"]), int(point["copy_bytes"])
            try:
                memory, own = rates[MEMORY, None, copied], rates["aiodb", depth, copied]
            except KeyError as error:
                raise BadOutputError(f"the result has no row for {error}") from error
            values = {"lmdb_gets_per_s": memory, "gets_per_s": own, "ratio": own / memory}
            rows.append(Row(point, values, window, ceilings.get(depth)))
        return rows


def _ceilings(output: str) -> dict[int, float]:
    """The device's rate by depth, as `bench queue-depth` printed it."""
    rows = bench_rows(output, "queue-depth")
    return {int(row.number("depth_per_thread")): row.rate("ceiling_reads_per_s") for row in rows}


def _identity(row: BenchRow) -> tuple[str, int | None, int]:
    depth = row.values.get("depth")
    return str(row.values.get("series")), None if depth is None else int(depth), int(row.number("copy_bytes"))
