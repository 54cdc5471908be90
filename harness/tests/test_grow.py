"""Nodes that join: what a log of it comes to. No node is started."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from clusters import campaign_of, results_of

from harness.experiments.grow import Grow
from harness.outcomes import Outcome
from harness.plan import runs
from harness.report.charts import drawn
from harness.report.figures.grow import figures
from harness.results import Results
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step

GROW = Grow()
AXES = {"engine": ("aiodb",), "nodes": (1, 2)}
PARAMETERS = {"workload": "readonly", "threads": 8, "records": 1000, "stage_seconds": 60}
REPORT = "[OVERALL], RunTime(ms), 120000\n[READ], Operations, 1000\n[READ], Return=OK, 1000\n"


def run_of(nodes: tuple[int, ...] = (1, 2), **parameters: int) -> Run:
    axes = {**AXES, "nodes": nodes}
    (run,) = runs(*campaign_of(GROW, axes, "cassandra", **{**PARAMETERS, **parameters}))  # type: ignore[arg-type]
    return run


def status_line(second: int, operations: int) -> str:
    at = datetime.fromtimestamp(1_800_000_000 + second, tz=UTC).astimezone()
    return f"{at:%Y-%m-%d %H:%M:%S}:000 {second} sec: {operations} operations; 1 current ops/sec; [READ: Count=1]"


def log_of(join_at: int = 60, joined_at: int = 80, ends_at: int = 120) -> tuple[tuple[float, str], ...]:
    """A client that does 100/s on one node, half as many while another joins, and 180/s on two; its second 0 is the
    run's second 10."""
    lines, operations = [(10.0, status_line(0, 0))], 0
    for second in range(1, ends_at + 1):
        operations += 100 if second <= join_at else 50 if second <= joined_at else 180
        lines.append((10.0 + second, status_line(second, operations)))
    said = [
        (10.0 + join_at, "grow: node 2 joins"),
        (10.0 + joined_at, "grow: node 2 receives 3 files(1.500MiB)"),
        (10.0 + joined_at, "grow: node 2 receives 1 files(512B)"),
        (10.0 + joined_at, "grow: node 2 has joined"),
    ]
    return tuple(sorted(lines + said))


def finished(run: Run, log: tuple[tuple[float, str], ...]) -> Finished:
    return Finished(Step("grow", ("x",), 1.0, tuple(run.points())), REPORT, log, 0.0, 200.0)


def test_each_number_of_nodes_has_the_throughput_of_its_own_time(tmp_path: Path) -> None:
    run = run_of()
    one, two = GROW.rows(run, finished(run, log_of()), Place(tmp_path, tmp_path, tmp_path, tmp_path))
    assert one.levels["nodes"] == 1
    assert one.values["operations_per_s"] == pytest.approx(100)
    assert "gain" not in one.values
    assert two.values["operations_per_s"] == pytest.approx(180)
    assert two.values["gain"] == pytest.approx(1.8)
    assert two.values["join_s"] == 20
    assert two.values["joining_per_s"] == pytest.approx(50)
    assert two.values["moved_bytes"] == 1.5 * 2**20 + 512
    assert one.window_s[1] <= 70, "joining belongs to neither"
    assert two.window_s[0] >= 90
    assert len(one.series) + len(two.series) >= 120, "the curve has no gap"


def test_a_time_too_short_to_say_anything_has_no_row(tmp_path: Path) -> None:
    run, place = run_of(), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    rows = GROW.rows(run, finished(run, log_of(joined_at=115)), place)
    assert [row.levels["nodes"] for row in rows] == [1]
    with pytest.raises(BadOutputError):
        GROW.rows(run, finished(run, ()), place)


def test_rows_that_are_lost_in_joining_are_no_gain(tmp_path: Path) -> None:
    run, place = run_of(), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    lost = f"{REPORT}[READ], Return=NOT_FOUND, 7\n[READ-FAILED], Operations, 7\n"
    with pytest.raises(BadOutputError, match="7 records were not found"):
        GROW.rows(run, replace(finished(run, log_of()), output=lost), place)


@pytest.mark.parametrize("nodes", [(2, 3), (1, 3), (2, 1)])
def test_nodes_join_one_by_one(nodes: tuple[int, ...]) -> None:
    assert "`nodes`" in str(GROW.refusal(run_of(nodes)))
    assert GROW.refusal(run_of()) is None


def test_the_client_asks_as_long_as_all_stages_take() -> None:
    place = Place(Path("/scratch"), Path("/kept"), Path("/checkout"), Path("/aiodb"))
    *_, grow = GROW.steps(run_of(), place)
    assert "maxexecutiontime=125" in grow.command
    assert grow.command[grow.command.index("/checkout/harness/grow.sh") + 1 :][:2] == ("2", "60")
    assert "CLUSTER=/scratch/cluster" in grow.command


def test_figures_shade_the_joining(tmp_path: Path) -> None:
    campaign, variant = campaign_of(GROW, AXES, "cassandra", **PARAMETERS)  # type: ignore[arg-type]
    run = run_of()
    rows = tuple(GROW.rows(run, finished(run, log_of()), Place(tmp_path, tmp_path, tmp_path, tmp_path)))
    outcome = Outcome(run.id, "cassandra", 1, "2026-01-31T12:00:00Z", 9.0, (), rows, ())
    results = Results(tmp_path, campaign, variant, None, (run,), {run.id: outcome})  # type: ignore[arg-type]
    by_nodes, over_time, *others = figures(results)
    ((began, ended),) = over_time.spans
    assert (round(began), round(ended)) == (59, 79), "since the first second that has a rate"
    for figure in (by_nodes, over_time, *others):
        assert drawn(figure)


def test_the_most_nodes_are_predicted_from_fewer() -> None:
    results = results_of(GROW, {**AXES, "nodes": (1, 2, 3, 4)}, "cassandra", operations_per_s=0.0)
    rows = [replace(row, values={"operations_per_s": 500.0 * row.levels["nodes"]}) for row in only(results).rows]  # type: ignore[operator]
    results = replace(results, outcomes={only(results).run_id: replace(only(results), rows=tuple(rows))})
    (by_nodes,) = [of for of in figures(results) if of.title == "Throughput by nodes"]
    assert by_nodes.series[1].marks[0][:2] == pytest.approx((4.0, 2000.0))
    assert "off by 0% (carrying the point before forward by 25%" in by_nodes.note


@pytest.mark.parametrize(
    ("per_s", "words"),
    [
        ((500.0, 836.0, 1064.0, 1200.0), ": the data support the law."),
        ((500.0, 1000.0, 1500.0, 700.0), ": the data do not support the law."),
    ],
)
def test_how_far_the_law_is_to_be_trusted_is_said(per_s: tuple[float, ...], words: str) -> None:
    results = results_of(GROW, {**AXES, "nodes": (1, 2, 3, 4)}, "cassandra", operations_per_s=0.0)
    rows = [replace(row, values={"operations_per_s": of}) for row, of in zip(only(results).rows, per_s, strict=True)]
    results = replace(results, outcomes={only(results).run_id: replace(only(results), rows=tuple(rows))})
    (by_nodes,) = [of for of in figures(results) if of.title == "Throughput by nodes"]
    assert words in by_nodes.note


def only(results: Results) -> Outcome:
    (outcome,) = results.outcomes.values()
    return outcome
