"""Cells over Cassandra, and engines below it: plans, commands, rows and figures. No node is started."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from clusters import CELLS, campaign_of, results_of

from harness.experiments import client
from harness.experiments.base import Experiment
from harness.experiments.cassandra import Cassandra
from harness.experiments.engines import Engines
from harness.experiments.levels import LEVELS, is_strong, replicas
from harness.fields import Value
from harness.outcomes import Outcome, write_outcome
from harness.plan import runs
from harness.report.charts import drawn
from harness.report.figure import Figure, HeatMap
from harness.report.figures import engines
from harness.report.figures.registry import figures_of
from harness.rows import DIED, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step

PLACE = Place(Path("/scratch"), Path("/kept"), Path("/checkout"), Path("/aiodb"))


def run_of(experiment: Experiment, axes: Mapping[str, tuple[Value, ...]], store: str, **parameters: Value) -> Run:
    (run,) = runs(*campaign_of(experiment, axes, store, **parameters))
    return run


def cells(axes: Mapping[str, tuple[Value, ...]] = CELLS, **parameters: Value) -> Run:
    return run_of(Cassandra(), axes, "cassandra", records=1000, seconds=20, **parameters)


@pytest.mark.parametrize(
    ("axes", "blamed"),
    [
        ({"level": ("THREE",), "replication": (2,)}, "`level`"),
        ({"replication": (4,)}, "`replication`"),
        ({"workload": ("readonly", "workloade")}, "`workload`"),
        ({}, None),
        ({"level": LEVELS}, None),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(axes: dict[str, tuple[Value, ...]], blamed: str | None) -> None:
    reason = Cassandra().refusal(cells({**CELLS, **axes}))
    assert (reason is None) if blamed is None else (reason is not None and blamed in reason)


@pytest.mark.parametrize(
    ("level", "replication", "expected", "strong"),
    [("ONE", 3, 1, False), ("TWO", 3, 2, True), ("QUORUM", 4, 3, True), ("TWO", 4, 2, False), ("ALL", 5, 5, True),
     ("ONE", 1, 1, True)],
)  # fmt: skip
def test_levels(level: str, replication: int, expected: int, strong: bool) -> None:
    assert (replicas(level, replication), is_strong(level, replication)) == (expected, strong)


def test_more_nodes_than_memory_takes_can_be_declared_but_not_measured() -> None:
    many = cells({**CELLS, "nodes": (20_000,)})
    assert Cassandra().refusal(many) is None
    assert "`nodes`: 20000 need" in str(Cassandra().obstacle(many))
    assert Cassandra().obstacle(cells()) is None


def test_cells_of_so_many_operations_say_how_long_these_took() -> None:
    run = cells(operations=3000)
    steps = [step for step in Cassandra().steps(run, PLACE) if step.points]
    assert all("operationcount=3000" in step.command for step in steps)
    warming = [step for step in Cassandra().steps(run, PLACE) if step.name.startswith("warm-up")]
    assert not any("operationcount=3000" in step.command for step in warming)
    report = "[OVERALL], RunTime(ms), 12500\n[READ], Operations, 3000\n[READ], Return=OK, 3000\n"
    assert client.execution_s(Finished(steps[0], report, (), 0.0, 20.0), 3000) == 12.5
    with pytest.raises(BadOutputError, match=r"3,000 operations in 12 s, and 4,000 were asked for"):
        client.execution_s(Finished(steps[0], report, (), 0.0, 20.0), 4000)


def test_every_cell_is_measured_in_each_pass_after_loading_and_warming_up() -> None:
    steps = list(Cassandra().steps(cells(passes=2), PLACE))
    names = [step.name for step in steps]
    assert names[:3] == ["load-stock-3", "warm-up-stock-3-writeonly", "warm-up-stock-3-readonly"]
    measured = [step for step in steps if step.points]
    assert len(measured) == 2 * len(list(cells().points())) == 32
    assert len({step.name for step in steps}) == len(steps), "each has files of its own"


def test_a_workload_warms_up_until_it_is_flat_or_its_time_is_over(tmp_path: Path) -> None:
    place = dataclasses.replace(PLACE, kept=tmp_path)

    def warming(per_second: int, growing: int = 0) -> list[Step]:
        """The calls of warming up where each second does so many operations, and more and more."""
        found = []
        for step in Cassandra().steps(cells({**CELLS, "engine": ("stock",), "workload": ("readonly",)},
                                            warm_up_seconds=70), place):  # fmt: skip
            if step.name.startswith("warm-up"):
                found.append(step)
                done = [second * per_second + growing * second**3 for second in range(22)]
                lines = (f"{s}.0\t2026-11-22 09:20:{s:02}:000 {s} sec: {of} operations; " for s, of in enumerate(done))
                (tmp_path / f"{step.name}.log").write_text("\n".join(lines) + "\n")
        return found

    names = ["warm-up-stock-3-readonly", "warm-up-stock-3-readonly-2", "warm-up-stock-3-readonly-3"]
    assert [step.name for step in warming(1000)] == names[:1]
    unsettled = warming(10, growing=100)
    assert [step.name for step in unsettled] == names
    assert [word for step in unsettled for word in step.command if word.startswith("maxexecutiontime")] == [
        "maxexecutiontime=25", "maxexecutiontime=25", "maxexecutiontime=35",
    ]  # fmt: skip


def test_a_table_that_is_written_is_emptied_first_and_one_that_is_read_is_not() -> None:
    for step in Cassandra().steps(cells(), PLACE):
        writes = any(word.endswith("/writeonly") for word in step.command)
        assert ("cassandra.truncate=true" in step.command) == writes
        assert any(word.endswith("_written" if writes else "_read") for word in step.command)


def test_a_cell_says_engine_level_and_hosts() -> None:
    (step,) = [step for step in Cassandra().steps(cells(), PLACE) if step.points and step.points[0] == {
        "nodes": 3, "replication": 3, "engine": "aiodb", "workload": "readonly", "level": "ALL", "entry": "token",
        "threads": 32}]  # fmt: skip
    for given in ("hosts=127.0.7.1,127.0.7.2,127.0.7.3", "cassandra.table_options=memtable = 'aiodb'",
                  "cassandra.readconsistencylevel=ALL", "cassandra.replication=3"):  # fmt: skip
        assert given in step.command
    assert step.command[-2:] == ("-threads", "32")


def test_durable_cells_have_a_durable_log_on_either_side() -> None:
    (service,) = Cassandra().services(cells(commit_log="batch"), PLACE)
    assert "DURABILITY=sync" in service.command
    assert "COMMIT_LOG=batch" in service.command
    (service,) = Cassandra().services(cells(), PLACE)
    assert {"COMMIT_LOG=periodic", "DURABILITY=interval"} <= set(service.command)


def test_figures_follow_the_axes_that_vary() -> None:
    results = results_of(Cassandra(), CELLS, "cassandra", operations_per_s=100.0, read_mean_us=7.0, insert_mean_us=9.0)
    figures = figures_of(results)
    titles = [figure.title for figure in figures]
    for workload in ("inserts", "reads"):
        for title in ("throughput by consistency level", "99th percentile by clients", "throughput by level"):
            assert f"{workload}: {title}" in titles
    assert not any("by nodes" in title for title in titles), "there is one number of nodes"
    (heat, _) = [figure for figure in figures if isinstance(figure, HeatMap)]
    assert {(cell.column, cell.strong) for cell in heat.cells} == {("ONE", False), ("ALL", True)}
    assert len(heat.cells) == len(heat.rows) * len(heat.columns)
    for figure in figures:
        assert drawn(figure)


def test_inserts_have_a_curve_over_time_for_each_cell_from_its_own_start() -> None:
    results = results_of(Cassandra(), CELLS, "cassandra", operations_per_s=100.0, insert_mean_us=9.0)
    assert not [figure for figure in figures_of(results) if "over time" in figure.title]
    ((run_id, outcome),) = results.outcomes.items()
    curve = ((40.0, 90.0), (41.0, 110.0))
    rows = tuple(dataclasses.replace(row, series=curve, latency_us=curve) for row in outcome.rows)
    results = dataclasses.replace(results, outcomes={run_id: dataclasses.replace(outcome, rows=rows)})
    rates, late = [figure for figure in figures_of(results) if "over time" in figure.title]
    assert isinstance(rates, Figure)
    assert len(rates.series) == 8, "of inserts alone"
    assert [mark[:2] for mark in rates.series[0].marks] == [(0.0, 90.0), (1.0, 110.0)]
    assert late.title == "inserts: mean latency over time"


def test_one_engine_alone_still_has_a_figure() -> None:
    axes = {axis: levels[:1] for axis, levels in CELLS.items()}
    results = results_of(Cassandra(), axes, "cassandra", operations_per_s=100.0, insert_mean_us=9.0)
    assert next(figure.title for figure in figures_of(results)) == "inserts: throughput by engine"


ENGINE_AXES: Mapping[str, tuple[Value, ...]] = {"test": ("put", "get", "overwrite", "read"), "rows": (1000, 10_000)}


def test_engines_read_what_they_have_written() -> None:
    steps = [step for step in Engines().steps(run_of(Engines(), ENGINE_AXES, "rocksdb"), PLACE) if step.points]
    tables = {step.name: next(word for word in step.command if word.startswith("table=")) for step in steps}
    assert tables["pass-1-put-1000"] == tables["pass-1-get-1000"] == "table=pass_1_put_1000"
    assert tables["pass-1-overwrite-10000"] == tables["pass-1-read-10000"] == "table=pass_1_overwritten_10000"
    (overwrite,) = [step for step in steps if step.name == "pass-1-overwrite-1000"]
    assert {"operationcount=5000", "updateproportion=1", "fieldlength=512"} <= set(overwrite.command)
    every = list(Engines().steps(run_of(Engines(), ENGINE_AXES, "rocksdb"), PLACE))
    fill = every[every.index(overwrite) - 1]
    assert (fill.name, fill.points, fill.command[1]) == ("pass-1-overwrite-1000-fill", (), "load")
    assert next(word for word in fill.command if word.startswith("table=")) == tables["pass-1-overwrite-1000"]


def test_each_engine_is_what_its_node_is_told() -> None:
    for store, word in (
        ("stock-4", "memtable_heap_space: 4MiB"),
        ("rocksdb", "rocksdb"),
        ("redis", "redis"),
        ("aiodb", "auto_snapshot"),
    ):
        (service,) = Engines().services(run_of(Engines(), ENGINE_AXES, store), PLACE)
        assert word in "\n".join(service.command)


def test_how_many_steps_there_are_is_known_unless_they_depend_on_rates() -> None:
    engines = Engines().steps(run_of(Engines(), ENGINE_AXES, "aiodb", passes=2), PLACE)
    assert len(engines) == 2 + 2 * (8 + 2), "warming up, and each pass with its two tables that are filled"
    assert isinstance(Cassandra().steps(cells(), PLACE), Sequence)
    assert not isinstance(Cassandra().steps(cells(warm_up_seconds=60), PLACE), Sequence), "it may be flat sooner"
    assert not isinstance(Cassandra().steps(cells(open_loop_part=0.5), PLACE), Sequence)


def test_one_number_of_rows_can_be_drawn() -> None:
    results = results_of(Engines(), {**ENGINE_AXES, "rows": (10_000,)}, "aiodb", seconds=1.0)
    for figure in engines.figures(results):
        assert drawn(figure)


def test_reading_what_nobody_wrote_is_refused() -> None:
    for tests in itertools.permutations(("put", "get")):
        reason = Engines().refusal(run_of(Engines(), {**ENGINE_AXES, "test": tests}, "aiodb"))
        assert (reason is None) == (tests == ("put", "get"))


REPORT = "[OVERALL], RunTime(ms), 2500\n[READ], Operations, {0}\n[READ], Return=OK, {0}\n"


def test_seconds_are_those_of_all_operations_or_there_are_none(tmp_path: Path) -> None:
    point: dict[str, Value] = {"test": "get", "rows": 1000}
    run, place = run_of(Engines(), ENGINE_AXES, "stock-4"), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    step = Step("pass-1-get-1000", ("x",), 1.0, (point,))
    folder = tmp_path / "cluster" / "node1" / "data" / "ycsb" / "pass_1_put_1000-0123"
    for flushed in (False, True):
        (row,) = Engines().rows(run, Finished(step, REPORT.format(1000), (), 1.0, 5.0), place)
        assert row.values["seconds"] == 2.5
        assert row.values["operations_per_s"] == 400
        assert row.marks == (("flushed",) if flushed else ())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "nb-1-big-Data.db").touch()
    with pytest.raises(BadOutputError, match="999 operations"):
        Engines().rows(run, Finished(step, REPORT.format(999), (), 1.0, 5.0), place)


def test_reading_what_is_not_there_is_no_result(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    missing = (
        "[OVERALL], RunTime(ms), 2500\n[READ], Operations, 0\n[READ], Return=NOT_FOUND, 1000\n"
        "[READ-FAILED], Operations, 1000\n"
    )
    point: dict[str, Value] = {"test": "get", "rows": 1000}
    step = Step("pass-1-get-1000", ("x",), 1.0, (point,))
    with pytest.raises(BadOutputError, match="1000 records were not found"):
        Engines().rows(run_of(Engines(), ENGINE_AXES, "stock-4"), Finished(step, missing, (), 1.0, 5.0), place)
    run = cells()
    for read in Cassandra().steps(run, place):
        if read.name.startswith("warm-up") or read.points:
            with pytest.raises(BadOutputError, match="1000 records were not found"):
                Cassandra().rows(run, Finished(read, missing, status_log(100), 0.0, 31.0), place)


def test_the_blogs_seconds_lie_beside_ours() -> None:
    results = results_of(Engines(), ENGINE_AXES, "aiodb", seconds=1.0)
    assert len(engines.figures(results)) == 1, "two counts of rows are no curve"
    axes = {**ENGINE_AXES, "rows": (1000, 10_000, 50_000)}
    _, *curves = engines.figures(results_of(Engines(), axes, "aiodb", seconds=1.0))
    beside = {of.title: any("in the blog" in series.name for series in of.series) for of in curves}
    assert list(beside.values()) == [True, True, False, False], "overwriting and reading are one figure there"


def status_log(per_s: int, seconds: int = 30) -> tuple[tuple[float, str], ...]:
    """What YCSB says of an even rate, its service fast and its operations late."""
    late = "[INSERT: Count=9, Max=9, Min=1, Avg=5.0] [Intended-INSERT: Count=9, Max=9, Min=1, Avg=7000.0]"
    return tuple(
        (float(second), f"2026-11-22 09:25:{second:02}:000 {second} sec: {second * per_s} operations; 1 {late}")
        for second in range(seconds + 1)
    )


def measured(place: Place, run: Run, steps: Mapping[str, float], died: str = "") -> None:
    """Leaves what an interrupted run leaves of steps that found these rates; in one of them a node may have died."""
    points = list(run.points())
    rows = [
        Row(
            points[int(step.rpartition("-")[2]) - 1],
            {"operations_per_s": per_s},
            (0.0, 1.0),
            marks=(f"{DIED}at once",) if step == died else (),
            step=step,
        )
        for step, per_s in steps.items()
    ]
    write_outcome(place.kept, Outcome(run.id, "cassandra", 1, "2026-01-31T12:00:00Z", 9.0, (), tuple(rows), ()))


def rate_of(point: Mapping[str, Value], number: int) -> float:
    return (1000 if point["workload"] == "readonly" else 300) + number


def open_steps(run: Run, place: Place) -> list[Step]:
    return [step for step in Cassandra().steps(run, place) if step.name.startswith("open_")]


def test_latencies_are_compared_at_half_of_what_the_weakest_cell_does(tmp_path: Path) -> None:
    run = cells({**CELLS, "threads": (8,)}, open_loop_part=0.5)
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    points = list(run.points())
    measured(place, run, {f"pass-1-cell-{number}": rate_of(of, number) for number, of in enumerate(points, 1)})
    steps = open_steps(run, place)
    assert [step.points for step in steps] == [(point,) for point in points]
    targets = {str(step.points[0]["workload"]): step.command[-1] for step in steps}
    assert targets == {"writeonly": "150", "readonly": "501"}
    report = "[INSERT], Operations, 9\n[INSERT], Return=OK, 9\n"
    (row,) = Cassandra().rows(run, Finished(steps[0], report, status_log(150), 0.0, 31.0), place)
    assert row.values == {"open_per_s": pytest.approx(150)}, "its rate is not what the cell can do"
    assert row.marks == ()
    assert {latency for _, latency in row.latency_us} == {7000.0}, "over time from the intended start as well"
    (row,) = Cassandra().rows(run, Finished(steps[0], report, status_log(146), 0.0, 31.0), place)
    assert row.marks == ("offered 150/s, did 146/s",)


def test_what_failed_says_nothing_of_what_can_be_offered(tmp_path: Path) -> None:
    run = cells({**CELLS, "threads": (8,)}, open_loop_part=0.5)
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    (tmp_path / "pass-1-cell-1.log").write_text("".join(f"{of}\t{line}\n" for of, line in status_log(2)))
    measured(place, run, {"pass-1-cell-3": 100.0, "pass-1-cell-4": 90.0}, died="pass-1-cell-4")
    points = list(run.points())
    assert points[2]["workload"] == points[3]["workload"]
    steps = open_steps(run, place)
    assert {step.command[-1] for step in steps} == {"50"}
    assert {step.points[0]["workload"] for step in steps} == {points[2]["workload"]}


def test_open_cells_take_their_time_as_well() -> None:
    closed, both = (Cassandra().expected_seconds(cells(open_loop_part=part)) for part in (0.0, 0.5))
    assert both - closed == len(list(cells().points())) * 25


def test_what_is_prepared_says_for_which_points() -> None:
    steps = {step.name: step for step in Cassandra().steps(cells(), PLACE)}
    load, warm = steps["load-aiodb-3"], steps["warm-up-stock-3-writeonly"]
    assert load.needed_by is not None
    assert {(of["engine"], of["workload"]) for of in load.needed_by} == {("aiodb", "readonly")}
    assert warm.needed_by is not None
    assert {(of["engine"], of["workload"]) for of in warm.needed_by} == {("stock", "writeonly")}
    assert len(warm.needed_by) == 4


def test_a_resumed_run_prepares_what_missing_cells_need(tmp_path: Path) -> None:
    run, place = cells(), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    missing = {"engine": "aiodb", "workload": "readonly", "level": "ALL", "threads": 8}
    done = {
        f"pass-1-cell-{number}": 1.0
        for number, point in enumerate(run.points(), 1)
        if not missing.items() <= point.items()
    }
    assert len(done) == 15
    measured(place, run, done)
    steps = [step for step in Cassandra().steps(run, place) if not step.points]
    assert [step.name for step in steps] == ["load-aiodb-3", "warm-up-aiodb-3-readonly"]
    again = cells(open_loop_part=0.5)
    steps = [step for step in Cassandra().steps(again, place) if not step.points]
    assert len(steps) == 6, "every cell is to be offered a rate"


KILLED = "cluster died: node 1 was killed by the kernel for using up its 1000 MiB of memory"


def dead_cell(death: str, log: tuple[tuple[float, str], ...], place: Place) -> Row:
    run = cells(node_death="result")
    step = next(step for step in Cassandra().steps(run, place) if step.points)
    assert step.may_die
    (row,) = Cassandra().rows(run, Finished(step, "", log, 1.0, 99.0, death), place)
    return row


def test_a_node_that_dies_of_its_memory_is_a_result_with_its_end(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    silent = tuple((21.0 + of, line.replace("09:25:20", f"09:25:{21 + of}")) for of, (_, line) in
                   enumerate([status_log(100, 20)[-1]] * 3))  # fmt: skip
    row = dead_cell(KILLED, status_log(100, 20) + silent, place)
    assert row.values == {"operations_per_s": pytest.approx(100)}
    assert row.marks == (f"died 20 s after the first operation: {KILLED}",)
    assert row.window_s == (0.0, 20.0)
    row = dead_cell(KILLED, (), place)
    assert row.marks[0].startswith("died before it had done anything")
    assert not row.values
    (tmp_path / "cluster.log").write_text("3.0\tjava.lang.OutOfMemoryError: Java heap space\n9.0\tnode 1 has ended\n")
    assert dead_cell("cluster died: ended with exit code 1", status_log(100), place).marks


def failing_log(per_s: int, first: int, last: int, failed: int) -> tuple[tuple[float, str], ...]:
    """What YCSB goes on to say where operations fail at once, or found nothing, and are counted."""
    kinds = (
        f"[INSERT: Count=0, Max=0, Min=0, Avg=0] [INSERT-FAILED: Count={failed}, Max=9, Min=1, Avg=5] "
        f"[Intended-INSERT-FAILED: Count={failed}, Max=9, Min=1, Avg=5]"
    )
    return tuple(
        (float(second), f"2026-11-22 09:25:{second:02}:000 {second} sec: {second * per_s} operations; 1 {kinds}")
        for second in range(first, last + 1)
    )


def test_what_fails_until_a_death_is_noticed_is_no_throughput(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    row = dead_cell(KILLED, status_log(100, 20) + failing_log(900, 21, 25, 900), place)
    assert row.values == {"operations_per_s": pytest.approx(100)}
    assert row.marks == (f"died with operations failing 21 s after the first: {KILLED}",)
    assert row.window_s == (0.0, 20.0)
    assert max(rate for _, rate in row.series) == pytest.approx(100)
    row = dead_cell(KILLED, status_log(100, 0) + failing_log(900, 1, 25, 900), place)
    assert row.marks[0].startswith("died before it had done anything for a second without a failure")
    assert not row.values


def test_what_fails_long_before_a_death_is_said(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    log = status_log(100, 9) + failing_log(100, 10, 10, 1) + failing_log(100, 11, 30, 0)
    row = dead_cell(KILLED, log, place)
    assert row.marks == (f"died with operations failing 10 s after the first: {KILLED}",)
    assert row.window_s == (0.0, 9.0)


def test_a_node_that_dies_while_it_is_warmed_up_is_a_result_of_the_cells_after(tmp_path: Path) -> None:
    run, place = cells(node_death="result"), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    step = next(step for step in Cassandra().steps(run, place) if step.name == "warm-up-aiodb-3-writeonly")
    assert step.may_die
    rows = Cassandra().rows(run, Finished(step, "", status_log(100), 1.0, 99.0, KILLED), place)
    assert [row.levels for row in rows] == list(step.needed_by or ())
    assert all(row.marks[0].startswith("died 30 s after") for row in rows)


def test_another_death_is_a_failure(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    with pytest.raises(BadOutputError, match="exit code 1"):
        dead_cell("cluster died: ended with exit code 1", status_log(100), place)
    assert not any(step.may_die for step in Cassandra().steps(cells(), PLACE))


def test_a_node_that_died_is_drawn_as_such() -> None:
    results = results_of(Cassandra(), CELLS, "cassandra", operations_per_s=100.0, insert_mean_us=9.0)
    ((run_id, outcome),) = results.outcomes.items()
    curve = ((40.0, 90.0), (41.0, 110.0))
    marks = [(f"died 1 s after the first operation: {KILLED}",), *[()] * (len(outcome.rows) - 1)]
    rows = tuple(
        dataclasses.replace(row, series=curve, latency_us=curve, marks=of)
        for row, of in zip(outcome.rows, marks, strict=True)
    )
    results = dataclasses.replace(results, outcomes={run_id: dataclasses.replace(outcome, rows=rows)})
    rates = next(figure for figure in figures_of(results) if "throughput over time" in figure.title)
    assert isinstance(rates, Figure)
    assert [series.died for series in rates.series] == [True] + [False] * 7
    assert "A cross" in rates.note


def test_what_a_cluster_is_made_with_is_part_of_its_results() -> None:
    names = {path.name for path in Cassandra().programs(cells(), PLACE)}
    assert {"cluster.sh", "within.sh", "keep-cluster.sh", "pom.xml", "writeonly", "readonly"} <= names
    names = {path.name for path in Engines().programs(run_of(Engines(), ENGINE_AXES, "rocksdb"), PLACE)}
    assert "store-rocksdb-0.1.0.jar" in names
    of_server = run_of(Engines(), ENGINE_AXES, "mysql")
    names = {path.name for path in Engines().programs(of_server, PLACE)}
    assert {"store-mysql-0.1.0-cassandra.jar", "cluster-servers.sh"} <= names
    assert list(Engines().packages(of_server)) == ["mariadb-server"]
    names = {path.name for path in Engines().programs(run_of(Engines(), ENGINE_AXES, "aiodb"), PLACE)}
    assert not any("store-" in name for name in names)
