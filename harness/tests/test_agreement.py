"""Two runs of one campaign."""

import dataclasses
from pathlib import Path

import pytest
from commands import Commands, campaign, results_in

from harness.agreement import Pair, pairs, runs_agree, unpaired
from harness.errors import HarnessError


@pytest.mark.parametrize(
    ("second", "difference", "agree"),
    [(100.0, 0.0, True), (109.9, 0.099, True), (110.1, 0.101, False), (80.0, -0.2, False)],
)
def test_medians_agree_within_a_tenth(tmp_path: Path, second: float, difference: float, agree: bool) -> None:
    of = campaign(Commands(), sizes=(1,))
    first = results_in(tmp_path / "first", of, [90.0, 110.0])
    (pair,) = pairs(first, results_in(tmp_path / "second", of, [second, second]))
    assert (pair.first, pair.second, pair.metric) == (100.0, second, "rate")
    assert pair.difference == pytest.approx(difference)
    assert pair.agree == agree


def test_runs_without_a_point_in_common_are_no_pair(tmp_path: Path) -> None:
    of = campaign(Commands())
    with pytest.raises(HarnessError, match="no point in common"):
        list(pairs(results_in(tmp_path / "first", of, [1.0, 1.0]), results_in(tmp_path / "second", of, [])))


def test_a_pair_has_what_either_run_says_of_its_point(tmp_path: Path) -> None:
    of = campaign(Commands(), sizes=(1,), repetitions=1)
    first = results_in(tmp_path / "first", of, [100.0])
    second = results_in(tmp_path / "second", of, [50.0])
    ((run_id, outcome),) = second.outcomes.items()
    rows = tuple(dataclasses.replace(row, marks=("disturbed: others",)) for row in outcome.rows)
    disturbed = dataclasses.replace(second, outcomes={run_id: dataclasses.replace(outcome, rows=rows)})
    assert [pair.marks for pair in pairs(first, disturbed)] == [("disturbed: others",)]
    assert [pair.marks for pair in pairs(first, second)] == [()]


def test_what_a_run_lacks_is_no_agreement(tmp_path: Path) -> None:
    of = campaign(Commands(), sizes=(1, 2), repetitions=1)
    first = results_in(tmp_path / "first", of, [100.0])
    second = results_in(tmp_path / "second", of, [100.0])
    ((run_id, outcome),) = second.outcomes.items()
    failed = dataclasses.replace(second, outcomes={run_id: dataclasses.replace(outcome, rows=outcome.rows[:1])})
    assert len(list(pairs(first, failed))) == 1
    assert list(unpaired(first, failed)) == ["shell size=2, run 2"]
    assert list(unpaired(first, second)) == []


@pytest.mark.parametrize(
    ("apart", "lacking", "agree"), [(0, [], True), (1, [], True), (2, [], False), (0, ["a"], False)]
)
def test_runs_agree_where_nine_tenths_of_their_medians_do(apart: int, lacking: list[str], agree: bool) -> None:
    found = [Pair("a point", "rate", 100.0, 150.0 if number < apart else 101.0) for number in range(10)]
    assert runs_agree(found, lacking) is agree
