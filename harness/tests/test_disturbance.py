"""Who else computed while a point was measured."""

import dataclasses
from pathlib import Path

import pytest
from commands import Commands, campaign, measure

from harness.disturbance import DISTURBED, with_disturbance
from harness.outcomes import read_outcome, write_outcome
from harness.rows import Row
from harness.sampling import HostSample

QUIET = HostSample(1.0, *([0.0] * (len(dataclasses.fields(HostSample)) - 1)))
ROW = Row({"size": 1}, {"rate_per_s": 1.0}, (0.0, 2.0), marks=("not flat",))


@pytest.mark.parametrize(
    ("others_cores", "steal", "marks"),
    [(0.0, 0.0, 0), (0.29, 0.04, 0), (0.5, 0.0, 1), (0.0, 0.2, 1), (1.5, 0.2, 2)],
)
def test_a_point_says_who_else_computed(others_cores: float, steal: float, marks: int) -> None:
    sample = dataclasses.replace(QUIET, cpu_others_cores=others_cores, cpu_steal=steal)
    (row,) = with_disturbance([ROW], [sample])
    assert row.marks[0] == "not flat"
    assert len([mark for mark in row.marks if mark.startswith(DISTURBED)]) == marks


def test_what_others_did_before_and_after_a_point_does_not_count() -> None:
    loud = dataclasses.replace(QUIET, t_s=9.0, cpu_others_cores=2.0)
    (row,) = with_disturbance([ROW], [QUIET, loud])
    assert row.marks == ROW.marks


def test_retrying_measures_disturbed_runs_again_and_no_others(tmp_path: Path) -> None:
    of = campaign(Commands(), sizes=(1,), repetitions=2)
    results = measure(of, tmp_path)
    folders = {run_id: results.folder / "runs" / run_id for run_id in results.outcomes}
    for number, folder in enumerate(folders.values()):
        outcome = read_outcome(folder)
        marks = (f"{DISTURBED}by a test",) if number == 0 else ()
        rows = tuple(dataclasses.replace(row, marks=marks, values={"rate_per_s": 7.0}) for row in outcome.rows)
        write_outcome(folder, dataclasses.replace(outcome, rows=rows))
    again = measure(of, tmp_path, retry=True)
    assert [outcome.rows[0].values["rate_per_s"] for outcome in again.outcomes.values()] == [1000.0, 7.0]
