"""What the rows of several runs come to at one point."""

import dataclasses

import pytest
from clusters import CELLS, results_of

from harness.experiments.cassandra import Cassandra
from harness.report.verdict import verdict_of
from harness.results import Point, Results
from harness.rows import Row
from harness.statistics import summarize

LEVELS = {"size": 1}
METRICS = Cassandra.metrics


def row(**values: float) -> Row:
    return Row(LEVELS, values, (0.0, 9.0))


def rates(*per_s: float) -> tuple[Row, ...]:
    return tuple(row(operations_per_s=of) for of in per_s)


def test_passes_of_one_run_are_one_value() -> None:
    point = Point("store", LEVELS, (rates(9.0, 10.0, 14.0), rates(20.0, 22.0)), ())
    assert point.summary("operations_per_s") == summarize([10.0, 21.0])
    assert point.repetitions(METRICS) == 2
    assert point.repetitions_text(METRICS) == "2 runs, 5 passes"
    assert len(point.rows) == 5


def test_passes_of_a_single_run_have_no_interval() -> None:
    point = Point("store", LEVELS, (rates(10.0, 10.1, 10.2),), ())
    summary = point.summary("operations_per_s")
    assert summary is not None
    assert (summary.interval, summary.sufficient) == (None, False)


def test_what_an_open_loop_found_is_no_further_repetition() -> None:
    point = Point("store", LEVELS, ((*rates(10.0), row(open_per_s=5.0)), (row(open_per_s=6.0),)), ())
    assert (point.repetitions(METRICS), point.repetitions_text(METRICS)) == (1, "1")
    assert point.summary("open_per_s") == summarize([5.0, 6.0])


def test_marks_of_some_passes_are_not_taken_for_those_of_some_runs() -> None:
    plain, marked = row(), dataclasses.replace(row(), marks=("not flat",))
    assert Point("store", LEVELS, ((marked,), (plain,)), ()).marks() == ["not flat (1 of 2)"]
    assert Point("store", LEVELS, ((marked, plain),), ()).marks() == ["not flat (1 of 2 measurements)"]
    assert Point("store", LEVELS, ((marked, marked), (marked, plain)), ()).marks() == ["not flat (3 of 4 measurements)"]
    assert Point("store", LEVELS, ((marked, marked),), ()).marks() == ["not flat"]


def test_a_metric_that_no_row_has_has_no_summary() -> None:
    assert Point("store", LEVELS, (rates(1.0),), ()).summary("p99_us") is None
    assert Point("store", LEVELS, (), ()).repetitions(METRICS) == 0


def twice(results: Results) -> Results:
    """The same with a second pass in each run."""
    outcomes = {
        run_id: dataclasses.replace(outcome, rows=(*outcome.rows, *outcome.rows))
        for run_id, outcome in results.outcomes.items()
    }
    return dataclasses.replace(results, outcomes=outcomes)


@pytest.mark.parametrize("passes", [1, 2])
def test_a_campaign_of_one_run_has_measured_each_point_once(passes: int) -> None:
    results = results_of(Cassandra(), CELLS, "cassandra", operations_per_s=100.0)
    results = results if passes == 1 else twice(results)
    assert verdict_of(results)[0].endswith("points measured once")
    assert {len(point.runs) for point in results.points()} == {1}
    assert {len(point.rows) for point in results.points()} == {passes}
