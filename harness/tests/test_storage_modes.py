"""Storage modes: what runs are called with, and what their logs come to. No store is opened."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusters import campaign_of

from harness.experiments.storage_modes import StorageModes, records
from harness.fields import Value
from harness.host import Identity, Origin
from harness.outcomes import Outcome
from harness.plan import runs
from harness.report.answers.storage_modes import answer
from harness.report.charts import chart, drawn
from harness.report.figure import Figure
from harness.report.figures.storage_modes import figures
from harness.report.names import store_colour, store_name
from harness.results import Results
from harness.rows import Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step

EXPERIMENT = StorageModes()
PLACE = Place(Path("/scratch"), Path("/kept"), Path("/checkout"), Path("/aiodb"))
BY_ITSELF = ("memory/memory", "memory/disk", "disk/disk")
IN_FLIGHT = (*BY_ITSELF, "memory/memory again")
REPORT = "[OVERALL], RunTime(ms), 120000\n[READ], Operations, 1000\n[READ], Return=OK, 1000\n"
# What a table does with each of the modes, 1/s, and the parts of it that are in memory at their ends.
RATES = (400, 200, 100, 350)
SHARES = (("1.0000", "0.9000"), ("1.0000", "0.1000"), ("0.0500", "0.0000"), ("1.0000", "0.8000"))


def run_of(
    modes: tuple[str, ...] = BY_ITSELF, threads: tuple[int, ...] = (12, 100), store: str = "aiodb-lsm", **more: Value
) -> Run:
    (run,) = runs(*campaign_of(EXPERIMENT, axes_of(modes, threads), store, **{"store_mib": 64, **more}))
    return run


def axes_of(modes: tuple[str, ...], threads: tuple[int, ...]) -> dict[str, tuple[Value, ...]]:
    return {"field_bytes": (1000,), "memory_times": (4.0,), "modes": modes, "threads": threads}


def status_line(second: int, operations: int) -> str:
    at = datetime.fromtimestamp(1_800_000_000 + second, tz=UTC).astimezone()
    return (
        f"{at:%Y-%m-%d %H:%M:%S}:000 {second} sec: {operations} operations; 1 current ops/sec; "
        "[READ: Count=1, Max=900, Min=10, Avg=250.0, 90=3, 99=4]"
    )


def log_of(stage: int = 40, changes: int = 4, shares: bool = True) -> tuple[tuple[float, str], ...]:
    """A client that asks from the run's second 10 on, and sets the modes so many times, each within half a second."""
    # The first line comes while the store is opened.
    lines = [(10.0, status_line(0, 0))]
    lines += [(10.3, "change: to memory/memory"), (10.4, "change: is memory/memory after 12.500 ms")]
    operations = 0
    for second in range(1, changes * stage + 1):
        operations += RATES[(second - 1) // stage]
        lines.append((10.0 + second, status_line(second, operations)))
    for number in range(1, changes + 1):
        at, (keys, values) = 10.2 + number * stage, SHARES[number - 1]
        lines += [(at, f"change: in memory keys {keys} values {values}")] if shares else []
        if number < changes:
            modes = IN_FLIGHT[number].removesuffix(" again")
            lines += [(at + 0.01, f"change: to {modes}"), (at + 0.5, f"change: is {modes} after 490.000 ms")]
    return tuple(sorted(lines))


def switch(run: Run, log: tuple[tuple[float, str], ...], place: Place = PLACE, report: str = REPORT) -> list[Row]:
    *_, step = EXPERIMENT.steps(run, place)
    return list(EXPERIMENT.rows(run, Finished(step, report, log, 0.0, 300.0), place))


def in_flight(store: str = "aiodb-lsm", **more: Value) -> Run:
    return run_of(IN_FLIGHT, (100,), store, stage_seconds=40, **more)


def given(step: Step) -> dict[str, str]:
    """The properties of a call."""
    words = step.command
    pairs = [after for word, after in itertools.pairwise(words) if word == "-p"]
    return dict(pair.split("=", 1) for pair in pairs)


def test_the_data_are_as_large_as_the_campaign_says() -> None:
    run = run_of()
    load, *_ = EXPERIMENT.steps(run, PLACE)
    of = given(load)
    each = len("user") + int(of["zeropadding"]) + int(of["fieldcount"]) * int(of["fieldlength"])
    assert int(of["recordcount"]) == records(run)
    assert int(of["recordcount"]) * each == pytest.approx(4 * int(of["store.memory_bytes"]), rel=1e-3)
    assert of["store.index"] == "lsm", "keys=disk is refused in tables of kind lmdb"
    assert "modes_at" not in of


def test_each_of_the_modes_is_set_before_the_first_operation_of_its_points() -> None:
    _, *measured = EXPERIMENT.steps(run_of(), PLACE)
    # What a process before has brought to memory, or has the next one bring there when it opens, is wanted there.
    assert [(given(step)["modes_at"], step.command[step.command.index("-threads") + 1]) for step in measured] == [
        ("0:disk/disk", "12"), ("0:disk/disk", "100"), ("0:memory/disk", "12"), ("0:memory/disk", "100"),
        ("0:memory/memory", "12"), ("0:memory/memory", "100"),
    ]  # fmt: skip
    assert len({step.name for step in measured}) == len(measured)
    assert all("/" not in step.name for step in measured), "files are named after steps"
    measured_points = [point for step in measured for point in step.points]
    assert sorted(measured_points, key=str) == sorted(run_of().points(), key=str)


def test_in_flight_all_modes_are_changed_by_one_client() -> None:
    run = run_of(IN_FLIGHT, (12, 100), stage_seconds=40)
    _, *measured = EXPERIMENT.steps(run, PLACE)
    for step, threads in zip(measured, (12, 100), strict=True):
        assert given(step)["modes_at"] == "0:memory/memory,40:memory/disk,80:disk/disk,120:memory/memory"
        assert given(step)["maxexecutiontime"] == "165"
        assert [point["modes"] for point in step.points] == list(IN_FLIGHT)
        assert {point["threads"] for point in step.points} == {threads}


def test_under_cassandra_tables_are_altered_between_configurations_that_differ_in_modes() -> None:
    run = in_flight(store="cassandra-aiodb-lsm", memory_mib=1000, warm_up_seconds=30)
    _, warm, measured = EXPERIMENT.steps(run, PLACE)
    assert warm.points == ()
    assert given(warm)["cassandra.memtable_at"] == "0:aiodb_memory_memory"
    assert given(measured)["cassandra.memtable_at"] == (
        "0:aiodb_memory_memory,40:aiodb_memory_disk,80:aiodb_disk_disk,120:aiodb_memory_memory"
    )
    assert "store.memory_bytes" not in given(measured)
    (service,) = EXPERIMENT.services(run, PLACE)
    told = dict(word.split("=", 1) for word in service.command if "=" in word)
    assert told["PARAMETERS"] == "index: lsm\nmemory: 64MiB"
    named = [line.strip(" :") for line in told["MEMTABLES"].splitlines() if line.startswith("    aiodb_")]
    assert {"aiodb_memory_memory", "aiodb_memory_disk", "aiodb_disk_disk"} <= set(named)
    assert (
        "    aiodb_memory_disk:\n      inherits: aiodb\n      parameters:\n        keys: memory\n        values: disk"
        in (told["MEMTABLES"])
    )
    assert any(word.startswith("ENTER=/") for word in service.command), "the node's memory is limited"
    assert EXPERIMENT.services(run_of(), PLACE) == ()


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (run_of(IN_FLIGHT), "`modes`: nothing comes again without `stage_seconds`"),
        (run_of(stage_seconds=15), "`stage_seconds` must be 20 at least"),
        (run_of(("disk/disk", "memory/memory again"), stage_seconds=40), "comes without 'memory/memory' before it"),
        (run_of(memory_mib=300), "`memory_mib` must be 320 at least"),
        (run_of(store="cassandra-aiodb-lsm", memory_mib=800), "`memory_mib`: cassandra-aiodb-lsm does not start"),
        (run_of(store="cassandra-aiodb-lsm", memory_mib=1000, durability="none"), "`durability`"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, reason: str) -> None:
    assert reason in str(EXPERIMENT.refusal(run))
    assert EXPERIMENT.refusal(run_of()) is None
    assert EXPERIMENT.refusal(in_flight()) is None


def test_each_of_the_modes_has_the_throughput_of_its_own_time() -> None:
    rows = switch(in_flight(), log_of())
    assert [row.levels["modes"] for row in rows] == list(IN_FLIGHT)
    assert [row.values["operations_per_s"] for row in rows] == pytest.approx(RATES)
    assert [row.values["keys_in_memory"] for row in rows] == [1.0, 1.0, 0.05, 1.0]
    assert [row.values["values_in_memory"] for row in rows] == [0.9, 0.1, 0.0, 0.8]
    assert "change_us" not in rows[0].values, "the modes at the beginning are no change in flight"
    assert [row.values["change_us"] for row in rows[1:]] == [490_000.0] * 3
    assert [row.values["after_per_s"] for row in rows[1:]] == pytest.approx(RATES[1:])
    assert [row.values["began_s"] for row in rows] == [10.4, 50.7, 90.7, 130.7]
    seconds = [second for row in rows for second, _ in row.series]
    assert len(set(seconds)) == len(seconds) == 160, "the curve has no gap, and no second twice"
    for row in rows:
        assert row.window_s[1] - row.window_s[0] >= 20
        assert row.marks == ()


def test_parts_in_memory_are_left_out_where_they_are_not_known() -> None:
    assert all("keys_in_memory" not in row.values for row in switch(in_flight(), log_of(shares=False)))


def test_a_change_that_was_not_made_has_no_result() -> None:
    log = tuple(line for line in log_of() if not line[1].startswith("change: is disk/disk"))
    with pytest.raises(BadOutputError, match="3 changes of modes, and 4 were asked for"):
        switch(in_flight(), log)


def test_records_that_are_not_found_under_some_modes_leave_no_result() -> None:
    lost = f"{REPORT}[READ], Return=NOT_FOUND, 7\n[READ-FAILED], Operations, 7\n"
    with pytest.raises(BadOutputError, match="7 records were not found"):
        switch(in_flight(), log_of(), report=lost)


def test_a_point_by_itself_has_what_was_in_memory_at_its_end() -> None:
    run = run_of(threads=(12,))
    *_, step = EXPERIMENT.steps(run, PLACE)
    (row,) = EXPERIMENT.rows(run, Finished(step, REPORT, log_of(changes=1), 0.0, 60.0), PLACE)
    assert row.levels["modes"] == "memory/memory"
    assert row.values["operations_per_s"] == pytest.approx(400)
    assert (row.values["keys_in_memory"], row.values["values_in_memory"]) == (1.0, 0.9)


def results_of(run: Run, rows: Iterable[Row], modes: tuple[str, ...]) -> Results:
    threads = tuple(int(of) for of in run.swept["threads"])
    campaign, variant = campaign_of(EXPERIMENT, axes_of(modes, threads), run.store, **dict(run.parameters))
    identity = Identity("a processor", 2, 2**34, "Linux", "vda", "ext4", {})
    origin = Origin(identity, "0123456789ab", "2026-01-31T12:00:00Z", "harness run", {})
    outcome = Outcome(run.id, run.store, 1, origin.began_utc, 9.0, (), tuple(rows), ())
    return Results(Path("/nowhere"), campaign, variant, origin, (run,), {run.id: outcome})


def test_the_moments_of_the_switch_are_marked_with_what_begins_there() -> None:
    run = in_flight()
    results = results_of(run, switch(run, log_of()), IN_FLIGHT)
    for figure in figures(results):
        assert isinstance(figure, Figure)
        moments = [(at, name) for at, name in chart(figure)["moments"]]
        # Since the first second that has a rate, which is the run's second 11.
        assert moments == [
            (0.0, "keys and values in memory"), (39.7, "keys in memory, values on disk"),
            (79.7, "keys and values on disk"), (119.7, "keys and values in memory"),
        ]  # fmt: skip
        assert drawn(figure)
        assert "when each of the modes ended: 100% and 90%; 100% and 10%; 5% and 0%; 100% and 80%." in figure.note
    throughput = figures(results)[0]
    assert isinstance(throughput, Figure)
    (line,) = throughput.series
    values = {mark.x: mark.y for mark in line.marks}
    assert (values[20.0], values[60.0], values[100.0], values[140.0]) == pytest.approx(RATES)


def test_the_answer_says_what_clients_notice_of_a_change() -> None:
    run = in_flight()
    rows = switch(run, log_of())
    slow = replace(rows[2], values={**rows[2].values, "after_per_s": 50.0})
    said = answer(results_of(run, [*rows[:2], slow, rows[3]], IN_FLIGHT))
    assert "keys and values in memory 400/s (in memory 100% of keys, 90% of values)" in said.sentence
    assert "right after a change at least 0.50 times the lower of both, to keys and values on disk" in said.sentence


def test_modes_are_compared_with_fewest_and_most_clients() -> None:
    run = run_of()
    rates = {("memory/memory", 12): 50.0, ("memory/disk", 12): 80.0, ("disk/disk", 12): 20.0}
    rates |= {("memory/memory", 100): 900.0, ("memory/disk", 100): 300.0, ("disk/disk", 100): 100.0}
    rows = [
        Row(
            point,
            {
                "operations_per_s": rates[str(point["modes"]), int(point["threads"])],
                "read_p99_us": 5.0,
                "keys_in_memory": 0.5,
            },
            (0, 9),
        )
        for point in run.points()
    ]
    results = results_of(run, rows, BY_ITSELF)
    throughput, late = figures(results)
    assert isinstance(throughput, Figure)
    assert [series.name for series in throughput.series] == [store_name(modes) for modes in BY_ITSELF]
    assert len({of["colour"] for of in chart(throughput)["series"]}) == 3, "modes are told apart by colour"
    assert [mark.y for mark in throughput.series[0].marks] == [50.0, 900.0]
    assert drawn(late)
    sentence = answer(results).sentence
    told = "with 12 to 100 clients: keys and values in memory 50.0/s to 900/s (in memory 50% of keys), keys in memory,"
    assert told in sentence, "what does most comes first"
    assert "keys and values on disk 20.0/s to 100/s" in sentence
    assert json.dumps(chart(throughput))


def test_modes_that_come_again_are_named_so() -> None:
    assert store_name("memory/memory again") == "keys and values in memory again"
    assert store_colour("memory/disk") != store_colour("disk/disk")
