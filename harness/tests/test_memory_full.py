"""Inserts until memory is full: what becomes a row, and what is drawn."""

import dataclasses
from pathlib import Path
from types import MappingProxyType

import pytest

from harness.experiments.base import BadOutputError, Finished, Place
from harness.experiments.memory_full import MemoryFull
from harness.fields import Value
from harness.host import Identity, Origin
from harness.plan import Campaign, Run, Variant
from harness.report.charts import draw
from harness.results import Outcome, Results

PLACE = Place(Path("/scratch"), Path("/kept"), Path("/checkout"), Path("/aiodb"))
KILLED = "killed by the kernel for using up its 512 MiB of memory"


def run_of(store: str, **parameters: Value) -> Run:
    given: dict[str, Value] = {
        "memory_mib": 512,
        "heap_mib": 128,
        "seconds": 60,
        "fields": 1,
        "field_bytes": 1000,
        "durability": "interval",
    }
    levels = MappingProxyType({"threads": 100})
    return Run(store, levels, MappingProxyType({}), ("load",), MappingProxyType({**given, **parameters}), 1)


def status_log(*operations: int) -> tuple[tuple[float, str], ...]:
    """Status lines ten seconds apart."""
    return tuple(
        (
            5.0 + 10 * number,
            f"2026-11-22 09:20:{10 * number:02}:000 {10 * number} sec: {done} operations; 1 current ops/sec; "
            f"[INSERT: Count={done}, Max=9000, Min=10, Avg={100 * (number + 1)}.5, 90=3, 99=4]",
        )
        for number, done in enumerate(operations)
    )


def finished(store: str, death: str | None, *operations: int, output: str = "") -> Finished:
    (step,) = MemoryFull().steps(run_of(store), PLACE)
    return Finished(step, output, status_log(*operations), 4.0, 99.0, death)


def results_of(run: Run, outcome: Outcome) -> Results:
    axes: dict[str, tuple[Value, ...]] = {"threads": (100,)}
    variant = Variant("quick", ("redis",), ("load",), 1, MappingProxyType(axes), run.parameters, ())
    variants = MappingProxyType({"quick": variant})
    campaign = Campaign("full", Path("full.toml"), "Title", "So?", "nobody", MemoryFull(), variants)
    identity = Identity("a processor", 2, 2**34, "Linux", "vda", "ext4", {})
    origin = Origin(identity, "0123456789ab", "2026-01-31T12:00:00Z", "harness run", {})
    return Results(Path("/nowhere"), campaign, variant, origin, (run,), {run.id: outcome})


REPORT = "[INSERT], Operations, 3000\n[INSERT], Return=OK, 3000\n"


def test_a_store_that_lives_is_a_line_of_points() -> None:
    (row,) = MemoryFull().rows(run_of("aiodb"), finished("aiodb", None, 0, 1000, 3000, output=REPORT), PLACE)
    assert row.values["operations_per_s"] == 150
    assert (row.values["first_per_s"], row.values["last_per_s"], row.values["least_per_s"]) == (100, 200, 100)
    assert row.series == ((15.0, 100.0), (25.0, 200.0))
    assert row.latency_us == ((15.0, 200.5), (25.0, 300.5))
    assert row.marks == ()


def test_a_store_that_was_killed_is_a_result_with_its_end() -> None:
    (row,) = MemoryFull().rows(run_of("redis"), finished("redis", f"redis-server died: {KILLED}", 0, 1000), PLACE)
    assert "died 10 s after the first insert, with 1,000 records at least" in row.marks[0]
    assert row.values["alive_s"] == 10


def test_only_the_dead_have_a_cross(tmp_path: Path) -> None:
    run = run_of("redis")
    (dead,) = MemoryFull().rows(run, finished("redis", f"redis-server died: {KILLED}", 0, 1000), PLACE)
    alive = dataclasses.replace(dead, marks=("disturbed: processes of others computed",))
    for row, died in ((dead, True), (alive, False)):
        outcome = Outcome(run.id, "redis", 1, "2026-01-31T12:00:00Z", 9.0, (), (row,), ())
        for figure in MemoryFull().figures(results_of(run, outcome)):
            (series,) = figure.series
            assert series.died == died
            assert "<svg" in draw(figure, "x")


@pytest.mark.parametrize(
    ("death", "output", "reason"),
    [
        ("ended with exit code 1", REPORT, "exit code 1"),
        (None, "[INSERT], Operations, 5\n[INSERT], Return=ERROR, 5", "5 operations failed"),
        (KILLED, "", "operations for less than 10 s"),
    ],
)
def test_what_is_no_result_has_no_number(death: str | None, output: str, reason: str) -> None:
    with pytest.raises(BadOutputError, match=reason):
        MemoryFull().rows(run_of("aiodb"), finished("aiodb", death, 0, output=output), PLACE)


def test_who_holds_the_data_is_limited() -> None:
    (step,) = MemoryFull().steps(run_of("lmdb"), PLACE)
    assert step.memory_bytes == 512 << 20
    assert step.may_die
    (step,) = MemoryFull().steps(run_of("redis"), PLACE)
    assert step.memory_bytes is None, "the client is not limited with the server"
    (service,) = MemoryFull().services(run_of("redis"), PLACE)
    assert service.memory_bytes == 512 << 20


def test_a_heap_that_leaves_no_room_is_refused() -> None:
    assert "`heap_mib`" in str(MemoryFull().refusal(run_of("aiodb", heap_mib=300)))
    assert MemoryFull().refusal(run_of("aiodb")) is None
