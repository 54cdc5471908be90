"""How the output of `aiodb bench` is read. The end-to-end test shows that the real program prints this form."""

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from harness.experiments.base import Experiment
from harness.experiments.bench import bench_rows
from harness.experiments.copy_size import CopySize
from harness.experiments.cost import Cost
from harness.experiments.queue_depth import QueueDepth
from harness.fields import Value
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step

PLACE = Place(Path("scratch"), Path("kept"), Path("checkout"), Path("aiodb"))


def outcome(bench: str, *rows: dict[str, Any]) -> str:
    return json.dumps({"bench": bench, "command": f"aiodb bench {bench}", "rows": rows})


def depth_row(depth: int, **changes: object) -> dict[str, Any]:
    row = {
        "index": "lmdb", "backend": "uring", "threads": 1, "depth_per_thread": depth, "gets_per_s": 1000.0 * depth,
        "ceiling_reads_per_s": 1100.0 * depth, "ratio": 0.91, "p50_us": 44.0, "p99_us": 80.0, "cpu_us_per_get": 5.5,
    }  # fmt: skip
    return {**row, **changes}


def run_of(experiment: Experiment, swept: dict[str, tuple[Value, ...]], **levels: Value) -> Run:
    parameters = {name: field.default or 1 for name, field in experiment.parameters.items()}
    swept_axes = MappingProxyType(swept)
    return Run("aiodb", MappingProxyType(levels), swept_axes, ("bench",), MappingProxyType(parameters), 1)


def finished(run: Run, output: str, log: tuple[tuple[float, str], ...] = (), name: str = "bench") -> Finished:
    return Finished(Step(name, ("aiodb",), 10, tuple(run.points())), output, log, 0.5, 9.0)


def test_a_row_of_each_depth_has_its_values_ceiling_and_window() -> None:
    run = run_of(QueueDepth(), {"depth": (1, 64)}, index="lmdb", backend="uring", threads=1)
    log = (
        (0.6, "bench: loading 10 pairs, index lmdb"),
        (2.0, "bench: segment files read once: 8"),
        (5.0, "bench: lmdb uring threads=1 depth=1: 1,000 gets/s"),
        (8.5, "bench: lmdb uring threads=1 depth=64: 64,000 gets/s"),
    )
    rows = QueueDepth().rows(run, finished(run, outcome("queue-depth", depth_row(1), depth_row(64)), log), PLACE)
    assert [row.levels["depth"] for row in rows] == [1, 64]
    assert [row.window_s for row in rows] == [(2.0, 5.0), (5.0, 8.5)], "loading is in no point's window"
    assert rows[1].ceiling_per_s == 70_400.0
    assert rows[1].values["gets_per_s"] == 64_000.0
    assert rows[0].levels in list(run.points()), "the executor asks for a row of each planned point"


def test_a_depth_measured_with_another_backend_is_marked() -> None:
    run = run_of(QueueDepth(), {"depth": (1,)}, index="lmdb", backend="uring", threads=1)
    (row,) = QueueDepth().rows(run, finished(run, outcome("queue-depth", depth_row(1, backend="threads"))), PLACE)
    assert row.marks == ("another backend",)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "no JSON"),
        ("[]", "no result of `aiodb bench queue-depth`"),
        (outcome("copy-size", depth_row(1)), "no result of `aiodb bench queue-depth`"),
        (outcome("queue-depth"), "has no rows"),
        (outcome("queue-depth", depth_row(1, gets_per_s=None)), "gets_per_s is None, which is no number"),
        (outcome("queue-depth", depth_row(1, gets_per_s=float("nan"))), "gets_per_s is nan"),
        (outcome("queue-depth", depth_row(1, p99_us=True)), "p99_us is True"),
        (outcome("queue-depth", depth_row(1, gets_per_s=0.0)), "nothing was measured"),
    ],
)
def test_output_that_is_no_result_is_refused(output: str, reason: str) -> None:
    run = run_of(QueueDepth(), {"depth": (1,)}, index="lmdb", backend="uring", threads=1)
    with pytest.raises(BadOutputError) as refused:
        QueueDepth().rows(run, finished(run, output), PLACE)
    assert reason in str(refused.value)


def test_copies_and_their_ceiling_come_from_two_commands(tmp_path: Path) -> None:
    run = run_of(CopySize(), {"depth": (64,), "copy_bytes": (0, 4096)}, index="lmdb")
    series = [("lmdb in memory", None, 0, 900.0), ("lmdb in memory", None, 4096, 400.0),
              ("aiodb", 64, 0, 90.0), ("aiodb", 64, 4096, 80.0)]  # fmt: skip
    rows = [dict(zip(("series", "depth", "copy_bytes", "gets_per_s"), row, strict=True)) for row in series]
    place = Place(tmp_path, tmp_path, tmp_path, Path("aiodb"))
    (tmp_path / "ceiling.out").write_text(outcome("queue-depth", depth_row(64, ceiling_reads_per_s=100.0)))
    found = CopySize().rows(run, finished(run, outcome("copy-size", *rows)), place)
    assert [(row.levels["copy_bytes"], row.values["ratio"], row.ceiling_per_s) for row in found] == [
        (0, 0.1, 100.0), (4096, 0.2, 100.0),
    ]  # fmt: skip
    with pytest.raises(BadOutputError, match="no row for"):
        CopySize().rows(run, finished(run, outcome("copy-size", *rows[:3])), place)


def test_costs_are_matched_with_their_points_whatever_their_order() -> None:
    run = run_of(Cost(), {"value_bytes": (1024,), "gets_per_s": (10_000,), "data_gb": (10, 100)}, index="lmdb")

    def row(gigabytes: float, ratio: float) -> dict[str, Any]:
        costs = dict.fromkeys(("memory_usd", "ssd_usd", "memory_nodes", "ssd_nodes"), 1.0)
        wanted = {"value_bytes": 1024, "gets_per_s": 10_000.0, "data_bytes": gigabytes * 1e9}
        return {**costs, **wanted, "ssd_to_memory_usd": ratio}

    output = outcome("cost", row(100, 0.3), row(10, 0.9))
    rows = Cost().rows(run, finished(run, output, name="cost"), PLACE)
    assert [(row.levels["data_gb"], row.values["ssd_to_memory_usd"]) for row in rows] == [(10, 0.9), (100, 0.3)]


def test_commands_name_every_level_and_parameter() -> None:
    run = run_of(QueueDepth(), {"depth": (1, 64)}, index="hash", backend="libaio", threads=2)
    (step,) = QueueDepth().steps(run, PLACE)
    line = " ".join(step.command)
    for part in ("aiodb bench queue-depth --json", "--dir scratch", "--index hash", "--backends libaio", "--threads 2",
                 "--depths 1,64", "--pairs 1000000", "--max-seconds 90"):  # fmt: skip
        assert part in line
    assert bench_rows(outcome("queue-depth", depth_row(1)), "queue-depth")[0].optional("nothing") == {}
