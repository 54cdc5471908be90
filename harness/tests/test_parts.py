"""Runs that were interrupted, or whose server died, and go on where they ended."""

import csv
import itertools
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from commands import PRINT_RATE, Commands, campaign, measure

from harness.outcomes import Failure, Outcome, write_outcome
from harness.parts import RESUMED, resume, unite
from harness.plan import Campaign, runs
from harness.results import Results
from harness.rows import Row
from harness.run import Run
from harness.steps import Finished, Place, Service, Step

# The shell's parent is the harness, here that of the test.
INTERRUPT = "kill -INT $PPID; sleep 1000"


class Independent(Commands):
    """Sizes that have nothing to do with each other, after something that prepares all of them."""

    resumable = True

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        prepare = f"echo prepared >> {place.kept.parents[3]}/prepared; echo 1"
        return [Step("prepare", ("/bin/sh", "-c", prepare), 20.0), *super().steps(run, place)]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        return super().rows(run, finished, place) if finished.step.points else ()


def _counting(folder: Path, size: int, then: str = PRINT_RATE) -> str:
    return f"echo {size} >> {folder}/measured; {then}"


def _interrupted_once(folder: Path) -> Campaign:
    """Three sizes; in the second one the harness is told to end, once."""
    once = f"[ -e {folder}/once ] || {{ touch {folder}/once; {INTERRUPT}; }}; {PRINT_RATE}"
    commands = {size: _counting(folder, size, once if size == 2 else f"sleep 1.2; {PRINT_RATE}") for size in (1, 2, 3)}
    return campaign(Independent(commands), (1, 2, 3), 1)


def _resumed(results: Results) -> list[str]:
    """The marks that say of parts; others that compute while this runs are marked as well."""
    marks = [mark for point in results.points() for row in point.rows for mark in row.marks]
    return [mark for mark in marks if mark.startswith(RESUMED)]


def _folder(results: Path) -> Path:
    return results / "demo" / "quick"


def test_a_resumed_run_measures_only_what_is_missing_and_says_so(tmp_path: Path) -> None:
    of = _interrupted_once(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert not list((_folder(tmp_path) / "scratch").iterdir())
    assert not list((_folder(tmp_path) / "runs").iterdir())
    results = measure(of, tmp_path)
    assert (tmp_path / "measured").read_text().split() == ["1", "2", "2", "3"]
    assert (tmp_path / "prepared").read_text().split() == ["prepared"] * 2, "a new store is a store to be prepared"
    (outcome,) = results.outcomes.values()
    assert not outcome.failures
    assert [(row.levels["size"], row.part, row.step) for row in outcome.rows] == [
        (1, 1, "size-1"), (2, 2, "size-2"), (3, 2, "size-3"),
    ]  # fmt: skip
    assert _resumed(results) == [f"{RESUMED}measured in part {part} of 2" for part in (1, 2, 2)]
    assert not list((_folder(tmp_path) / "partial").iterdir())


def test_all_parts_have_one_clock_and_one_file_of_samples(tmp_path: Path) -> None:
    of = _interrupted_once(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    (outcome,) = measure(of, tmp_path).outcomes.values()
    windows = [row.window_s for row in outcome.rows]
    assert windows == sorted(windows)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(windows))
    folder = _folder(tmp_path) / "runs" / outcome.run_id
    with (folder / "host.csv").open(newline="") as file:
        seconds = [float(row["t_s"]) for row in csv.DictReader(file)]
    assert seconds == sorted(seconds)
    for began, ended in (windows[0], windows[2]):
        assert any(began < second <= ended + 1 for second in seconds), "each part was sampled"
    assert outcome.seconds >= windows[-1][1]
    kept = {file.name for file in folder.iterdir()}
    assert {"size-1.out", "size-2.out", "size-3.log", "part-1-prepare.out", "part-1-size-2.out"} <= kept
    assert not [name for name in kept if name.endswith(".csv") and name.startswith("part-")]


KILLED = """\
import sys
from pathlib import Path
from test_parts import Independent
from commands import campaign, measure
folder = Path(sys.argv[1])
once = f"[ -e {folder}/once ] && {{ echo 6; exit; }}; touch {folder}/once; kill -9 $PPID"
commands = {1: "sleep 1.2; echo 5", 2: once}
measure(campaign(Independent(commands), (1, 2), 1), folder)
"""


def test_a_killed_harness_leaves_what_was_measured_to_the_next_one(tmp_path: Path) -> None:
    paths = ":".join(str(Path(__file__).parents[up] / name) for up, name in ((0, ""), (1, "src")))
    command = ["env", f"PYTHONPATH={paths}", sys.executable, "-c", KILLED, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -9
    assert subprocess.run(command, check=False).returncode == 0
    (run,) = (_folder(tmp_path) / "runs").iterdir()
    assert '"resumed: measured in part 1 of 2"' in (run / "run.json").read_text()


def test_a_run_that_is_not_planned_any_more_is_not_kept(tmp_path: Path) -> None:
    of = _interrupted_once(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert list((_folder(tmp_path) / "partial").iterdir())
    other = campaign(of.experiment, (3,), 1)
    assert not _resumed(measure(other, tmp_path))
    assert not list((_folder(tmp_path) / "partial").iterdir())


def test_what_was_measured_by_another_command_is_measured_again(tmp_path: Path) -> None:
    of = _interrupted_once(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert isinstance(of.experiment, Independent)
    of.experiment.commands[1] = _counting(tmp_path, 1, "echo 2000")
    points = measure(of, tmp_path).points()
    assert [row.values["rate_per_s"] for row in points[0].rows] == [2000]
    assert (tmp_path / "measured").read_text().split() == ["1", "2", "1", "2", "3"]


def test_results_of_other_programs_take_no_interrupted_run_with_them(tmp_path: Path) -> None:
    class OtherProgram(Independent):
        def programs(self, run: Run, place: Place) -> Sequence[Path]:
            return (Path("/bin/ls"),)

    of = _interrupted_once(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert isinstance(of.experiment, Independent)
    results = measure(replace(of, experiment=OtherProgram(of.experiment.commands)), tmp_path)
    assert not _resumed(results)
    assert not list(tmp_path.glob("demo/*/partial/*"))


def test_a_run_that_began_badly_is_not_kept(tmp_path: Path) -> None:
    of = campaign(Independent({1: INTERRUPT}), (1, 2), 1)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert not list((_folder(tmp_path) / "partial").iterdir())


def test_the_rest_goes_on_with_servers_of_its_own(tmp_path: Path) -> None:
    die = tmp_path / "die"
    server = f"while [ ! -e {die} ]; do sleep 0.05; done; rm {die}; echo no more >&2; exit 7"
    service = Service("server", ("/bin/sh", "-c", server), lambda: True, seconds_to_start=5)
    commands = {1: _counting(tmp_path, 1), 2: f"touch {die}; sleep 1000", 3: _counting(tmp_path, 3)}
    results = measure(campaign(Independent(commands, service), (1, 2, 3), 1), tmp_path)
    _, second, third = results.points()
    assert (tmp_path / "measured").read_text().split() == ["1", "3"]
    assert _resumed(results) == [f"{RESUMED}measured in part {part} of 2" for part in (1, 2)]
    assert "server died: ended with exit code 7" in second.failures[0].reason
    assert second.failures[0].log[-1].endswith("no more")
    assert not second.rows
    assert not third.failures


def test_servers_that_always_die_are_given_up(tmp_path: Path) -> None:
    service = Service("server", ("/bin/sh", "-c", "sleep 0.3; exit 7"), lambda: True, seconds_to_start=5)
    sizes = tuple(range(1, 8))
    of = campaign(Independent(dict.fromkeys(sizes, "sleep 1000"), service), sizes, 1)
    points = measure(of, tmp_path).points()
    assert all(len(point.failures) == 1 and not point.rows for point in points), "each is said to have failed, once"
    assert len((tmp_path / "prepared").read_text().split()) == 4


def test_a_preparation_loses_only_the_points_that_need_it(tmp_path: Path) -> None:
    class Prepared(Commands):
        """The first size needs something that cannot be had."""

        def steps(self, run: Run, place: Place) -> Sequence[Step]:
            first, second = super().steps(run, place)
            broken = ("/bin/sh", "-c", "echo no such engine >&2; exit 1")
            more = Step("warm-up", ("/bin/sh", "-c", f"touch {tmp_path}/warm"), 20.0, needed_by=first.points)
            return [Step("load", broken, 20.0, needed_by=first.points), more, first, second]

    first, second = measure(campaign(Prepared(), repetitions=1), tmp_path).points()
    assert [failure.step for failure in first.failures] == ["load"]
    assert not first.rows
    assert not (tmp_path / "warm").exists(), "nobody needs it"
    assert len(second.rows) == 1
    assert not second.failures


class Dying(Independent):
    """Something that the first size needs kills the server, which is a result of that size."""

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        first, second = super().steps(run, place)[1:]
        warm = ("/bin/sh", "-c", f"touch {place.kept.parents[3]}/die; sleep 1000")
        return [Step("warm-up", warm, 20.0, may_die=True, needed_by=first.points), first, second]

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        if finished.death is None:
            return super().rows(run, finished, place)
        return [Row(point, {"rate_per_s": 1.0}, (0.0, 1.0)) for point in finished.step.needed_by or ()]


def test_a_death_in_a_preparation_is_the_result_of_what_it_prepares(tmp_path: Path) -> None:
    die, once = tmp_path / "die", tmp_path / "once"
    server = f"while [ ! -e {die} ]; do sleep 0.05; done; rm {die}; exit 7"
    service = Service("server", ("/bin/sh", "-c", server), lambda: True, seconds_to_start=5)
    interrupted = f"[ -e {once} ] || {{ touch {once}; {INTERRUPT}; }}; {PRINT_RATE}"
    of = campaign(Dying({1: _counting(tmp_path, 1), 2: interrupted}, service), (1, 2), 1)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    first, second = measure(of, tmp_path).points()
    assert [row.step for row in (*first.rows, *second.rows)] == ["warm-up", "size-2"]
    assert not first.failures
    assert not (tmp_path / "measured").exists(), "neither with the servers of the next part nor of a further one"


def test_half_a_line_of_a_killed_harness_is_no_sample(tmp_path: Path) -> None:
    write_outcome(
        tmp_path, Outcome("run", "shell", 1, "2026-01-31T12:00:00Z", 3.0, (), (), (Failure("s", "r", (), ()),))
    )
    for name in ("host.csv", "processes.csv"):
        (tmp_path / name).write_text("t_s,cpu\n1.0,0.5\n8.0,0.5\n9.0,0.")
    earlier = resume(tmp_path)
    assert earlier is not None
    assert earlier.seconds == 10.0
    for name in ("host.csv", "processes.csv"):
        assert (tmp_path / f"part-1-{name}").exists()
        (tmp_path / name).write_text("t_s,cpu\n11.0,0.7\n")
    unite(tmp_path)
    assert (tmp_path / "host.csv").read_text() == "t_s,cpu\n1.0,0.5\n8.0,0.5\n11.0,0.7\n"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["host.csv", "processes.csv", "run.json"]


def test_what_cannot_be_read_is_measured_again(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "run.json").write_text("{")
    assert resume(kept) is None
    assert not kept.exists()
    assert resume(tmp_path / "none") is None


def test_runs_of_one_command_are_not_resumed(tmp_path: Path) -> None:
    commands = {
        1: _counting(tmp_path, 1),
        2: f"[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; {INTERRUPT}; }}; echo 1",
    }
    of = campaign(Commands(commands), (1, 2), 1)
    with pytest.raises(KeyboardInterrupt):
        measure(of, tmp_path)
    assert not list((_folder(tmp_path) / "partial").iterdir())
    results = measure(of, tmp_path)
    assert (tmp_path / "measured").read_text().split() == ["1", "1"]
    assert len(runs(of, of.variants["quick"])) == len(results.outcomes) == 1
