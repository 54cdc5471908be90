"""Inserts until memory is full: what becomes a row, and what is drawn."""

import dataclasses
from pathlib import Path
from types import MappingProxyType

import pytest

from harness.experiments.memory_full import MemoryFull
from harness.fields import Value
from harness.host import Identity, Origin
from harness.outcomes import Outcome
from harness.plan import Campaign, Variant
from harness.report.charts import drawn
from harness.report.figures.memory_full import figures
from harness.results import Results
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place

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


def test_what_some_threads_wait_for_after_the_end_is_no_throughput_but_the_longest_insert() -> None:
    run = dataclasses.replace(run_of("aiodb"), parameters={**run_of("aiodb").parameters, "seconds": 20})
    log = status_log(0, 1000, 3000, 3001)
    late = (log[-1][0], log[-1][1].replace("Max=9000", "Max=13000000"))
    done = dataclasses.replace(finished("aiodb", None, output=REPORT), log=(*log[:-1], late))
    (row,) = MemoryFull().rows(run, done, PLACE)
    assert row.series == ((15.0, 100.0), (25.0, 200.0))
    assert (row.values["operations_per_s"], row.values["least_per_s"]) == (150, 100)
    assert row.values["longest_s"] == 13


def test_a_store_that_was_killed_is_a_result_with_its_end() -> None:
    (row,) = MemoryFull().rows(run_of("redis"), finished("redis", f"redis-server died: {KILLED}", 0, 1000), PLACE)
    assert "died 10 s after the first insert, with 1,000 records at least" in row.marks[0]
    assert row.values["alive_s"] == 10


def second_by_second(*operations: int) -> tuple[tuple[float, str], ...]:
    """Status lines a second apart."""
    return tuple(
        (5.0 + second, f"2026-11-22 09:20:{second:02}:000 {second} sec: {done} operations; "
         f"[INSERT: Count=1, Max=9000, Min=10, Avg={100.0 if second <= 10 else 400.0}, 90=3, 99=4]")
        for second, done in enumerate(operations)
    )  # fmt: skip


def dying(log: tuple[tuple[float, str], ...], death: str | None = KILLED) -> Finished:
    return dataclasses.replace(finished("redis", death), log=log, began_s=4.0, ended_s=11.0)


def test_a_store_that_dies_before_the_first_point_is_a_result() -> None:
    (row,) = MemoryFull().rows(run_of("redis"), dying(second_by_second(0, 500, 900, 1000)), PLACE)
    assert row.values["alive_s"] == 3
    assert row.values["records"] == 1000
    assert row.series == ((8.0, 1000 / 3),)
    assert row.marks[0].startswith("died 3 s after the first insert")
    for log in ((), second_by_second(0)):
        (row,) = MemoryFull().rows(run_of("redis"), dying(log), PLACE)
        assert row.values == {"alive_s": 7.0}
        assert row.marks[0].startswith("died within 7 s, before it had done anything")


def test_a_store_of_which_only_its_death_is_known_is_named_with_the_figures() -> None:
    run = run_of("redis")
    (row,) = MemoryFull().rows(run, dying(()), PLACE)
    outcome = Outcome(run.id, "redis", 1, "2026-01-31T12:00:00Z", 9.0, (), (row,), ())
    for figure in figures(results_of(run, outcome)):
        assert "dead before it had done anything for a second: Redis" in figure.note
        assert drawn(figure)


def test_points_are_of_ten_seconds_with_the_mean_of_all_their_operations() -> None:
    done = [100 * second for second in range(11)] + [1000 + 300 * second for second in range(1, 9)]
    (row,) = MemoryFull().rows(run_of("redis"), dying(second_by_second(*done)), PLACE)
    assert row.series == ((15.0, 100.0), (23.0, 300.0)), "what is left at the end is nearly as long"
    assert row.latency_us == ((15.0, 100.0), (23.0, 400.0))
    (row,) = MemoryFull().rows(run_of("redis"), dying(second_by_second(*done[:14])), PLACE)
    assert row.series == ((15.0, 100.0),)
    assert row.values["records"] == 1900


def test_only_the_dead_have_a_cross(tmp_path: Path) -> None:
    run = run_of("redis")
    (dead,) = MemoryFull().rows(run, finished("redis", f"redis-server died: {KILLED}", 0, 1000), PLACE)
    alive = dataclasses.replace(dead, marks=("disturbed: processes of others computed",))
    for row, died in ((dead, True), (alive, False)):
        outcome = Outcome(run.id, "redis", 1, "2026-01-31T12:00:00Z", 9.0, (), (row,), ())
        for figure in figures(results_of(run, outcome)):
            (series,) = figure.series
            assert series.died == died
            assert drawn(figure)


@pytest.mark.parametrize(
    ("death", "output", "reason"),
    [
        ("ended with exit code 1", REPORT, "exit code 1"),
        (None, "[INSERT], Operations, 5\n[INSERT], Return=ERROR, 5", "5 operations failed"),
        (None, REPORT, "operations for less than 5 s"),
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


def test_of_cassandra_the_node_is_limited_and_its_death_is_a_result(tmp_path: Path) -> None:
    run = run_of("cassandra-aiodb", memory_mib=1000)
    (step,) = MemoryFull().steps(run, PLACE)
    assert step.memory_bytes is None
    assert {"cql", "cassandra.table_options=memtable = 'aiodb'"} <= set(step.command)
    (service,) = MemoryFull().services(run, PLACE)
    assert any(word.startswith("ENTER=/") for word in service.command), "the node enters a group of its own"
    place = dataclasses.replace(PLACE, kept=tmp_path)
    death = "cluster died: ended with exit code 3 of its own"
    dead = dataclasses.replace(dying(second_by_second(0, 500, 900)), death=death)
    with pytest.raises(BadOutputError, match="exit code 3 of its own"):
        MemoryFull().rows(run, dead, place)
    (tmp_path / "cluster.log").write_text("java.lang.OutOfMemoryError: Java heap space\n")
    (row,) = MemoryFull().rows(run, dead, place)
    assert row.marks[0].startswith("died 2 s after the first insert")


def test_a_store_without_a_durability_and_a_node_with_too_little_memory_are_refused() -> None:
    assert "`memory_mib`: cassandra does not start in less than 900 MiB" in str(
        MemoryFull().refusal(run_of("cassandra"))
    )
    without = run_of("cassandra", memory_mib=1000, durability="none")
    assert "`durability`: cassandra has no `none`" in str(MemoryFull().refusal(without))
    assert MemoryFull().refusal(run_of("cassandra", memory_mib=1000)) is None


def test_a_heap_that_leaves_no_room_is_refused() -> None:
    assert "`heap_mib`" in str(MemoryFull().refusal(run_of("aiodb", heap_mib=300)))
    assert MemoryFull().refusal(run_of("aiodb")) is None
