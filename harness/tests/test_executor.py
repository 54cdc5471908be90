"""Campaigns of small shell commands: what is finished stays, what fails is said, and nothing is left behind."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from commands import PRINT_RATE, Commands, campaign, measure

from harness.errors import HarnessError
from harness.execution import Execution
from harness.plan import runs
from harness.run import Run
from harness.sampling import read_host, read_processes
from harness.steps import Place, Service, Step


def test_a_campaign_measures_every_point_as_often_as_it_says(tmp_path: Path) -> None:
    results = measure(campaign(Commands()), tmp_path)
    points = results.points()
    assert [(dict(point.levels), len(point.rows)) for point in points] == [({"size": 1}, 2), ({"size": 2}, 2)]
    summary = points[0].summary("rate_per_s")
    assert summary is not None
    assert summary.median == 1000
    assert not any(point.failures for point in points)


def test_a_run_keeps_logs_samples_and_commands_and_no_store(tmp_path: Path) -> None:
    experiment = Commands({1: "echo some > SCRATCH/store; echo 5; sleep 1.2"})
    results = measure(campaign(experiment, sizes=(1,), repetitions=1), tmp_path)
    (outcome,) = results.outcomes.values()
    folder = results.folder / "runs" / outcome.run_id
    assert outcome.commands[0][:2] == ("/bin/sh", "-c")
    assert (folder / "size-1.out").read_text() == "5\n"
    assert len(read_host(folder / "host.csv")) >= 2
    assert {sample.name for sample in read_processes(folder / "processes.csv")} & {"sh", "sleep"}
    assert not list((results.folder / "scratch").iterdir())
    assert not list((results.folder / "partial").iterdir())
    assert set(results.origin.identity.programs) == {"sh", "harness"}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo it broke >&2; exit 3", "ended with exit code 3"),
        ("kill -9 $$", "killed by signal 9"),
        ("echo many", "no rate"),
        ("true", "no result for size=1"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 5", "ended with exit code 5"),
        ("/nothing/there", "ended with exit code 127"),
    ],
)
def test_a_failed_point_is_said_with_its_log_and_the_others_are_measured(
    tmp_path: Path, command: str, reason: str
) -> None:
    points = measure(campaign(Commands({1: command})), tmp_path).points()
    assert len(points[0].failures) == 2
    assert reason in points[0].failures[0].reason
    assert not points[0].rows, "a failed run has no number"
    assert len(points[1].rows) == 2
    assert all(len(line) < 400 for line in points[0].failures[0].log)
    if "it broke" in command:
        assert points[0].failures[0].log[0].endswith("\tit broke")


def test_a_command_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    of = campaign(Commands({1: "sleep 1000 & sleep 1000"}), sizes=(1, 2), repetitions=1)
    variant = of.variants["quick"]
    object.__setattr__(variant, "parameters", {"limit_s": 0.5})
    points = measure(of, tmp_path).points()
    assert "did not end within 0.5 s" in points[0].failures[0].reason
    assert len(points[1].rows) == 1
    assert not _sleepers()


def test_a_child_that_leaves_its_group_is_stopped_too(tmp_path: Path) -> None:
    experiment = Commands({1: f"setsid sleep 1000 & {PRINT_RATE}"})
    assert len(measure(campaign(experiment, (1,), 1), tmp_path).points()[0].rows) == 1
    assert not _sleepers()


def test_finished_runs_are_not_measured_again(tmp_path: Path) -> None:
    counting = Commands({1: f"echo once >> {tmp_path}/count; {PRINT_RATE}"})
    measure(campaign(counting, repetitions=2), tmp_path)
    results = measure(campaign(counting, repetitions=3), tmp_path)
    assert (tmp_path / "count").read_text().splitlines() == ["once"] * 3
    assert len(results.points()[0].rows) == 3


def test_failed_runs_are_kept_until_a_retry_is_asked_for(tmp_path: Path) -> None:
    fails_once = Commands({1: f"test -e {tmp_path}/mended || exit 1; {PRINT_RATE}"})
    of = campaign(fails_once, sizes=(1,), repetitions=1)
    assert measure(of, tmp_path).points()[0].failures
    (tmp_path / "mended").touch()
    assert measure(of, tmp_path).points()[0].failures
    assert not measure(of, tmp_path, retry=True).points()[0].failures


def test_results_of_another_program_are_moved_aside(tmp_path: Path) -> None:
    class OtherProgram(Commands):
        def programs(self, run: object, place: object) -> tuple[Path]:
            return (Path("/bin/ls"),)

    first = measure(campaign(Commands()), tmp_path)
    measure(campaign(OtherProgram()), tmp_path)
    aside = [folder.name for folder in (tmp_path / "demo").iterdir() if folder != first.folder]
    assert len(aside) == 1
    assert aside[0].startswith("quick-until-")
    assert len(list((tmp_path / "demo" / aside[0] / "runs").iterdir())) == 2


def test_a_missing_program_is_refused_before_anything_starts(tmp_path: Path) -> None:
    class NoProgram(Commands):
        def programs(self, run: object, place: object) -> tuple[Path]:
            return (Path("/nothing/there"),)

    with pytest.raises(HarnessError, match="/nothing/there is missing"):
        measure(campaign(NoProgram()), tmp_path)
    assert not (tmp_path / "demo").exists()


def test_two_campaigns_do_not_measure_at_once(tmp_path: Path) -> None:
    slow = campaign(Commands({1: f"touch {tmp_path}/began; sleep 5; echo 1"}), sizes=(1,), repetitions=1)
    first = subprocess.Popen(_demo(tmp_path, "touch SCRATCH/../../../../began; sleep 30"))
    _wait_until((tmp_path / "began").exists)
    with pytest.raises(HarnessError, match="another campaign is running"):
        measure(slow, tmp_path)
    first.send_signal(signal.SIGINT)
    assert first.wait(30) == 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_campaign_leaves_finished_runs_and_nothing_else(tmp_path: Path, number: signal.Signals) -> None:
    began = tmp_path / "began"
    harness = subprocess.Popen(_demo(tmp_path, "touch SCRATCH/../../../../began; setsid sleep 1000 & sleep 1000"))
    _wait_until(began.exists)
    started = psutil.Process(harness.pid).children(recursive=True)
    assert started
    harness.send_signal(number)
    assert harness.wait(60) == 130
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
    folder = tmp_path / "demo" / "quick"
    assert not list((folder / "runs").iterdir())
    assert not list((folder / "scratch").iterdir())
    assert not list((folder / "partial").iterdir())


def test_a_killed_campaign_is_swept_and_resumed(tmp_path: Path) -> None:
    harness = subprocess.Popen(
        _demo(tmp_path, "test -e SCRATCH/../../../../began && { echo 7; exit; }; "
              "touch SCRATCH/../../../../began; sleep 1000 & sleep 1000")
    )  # fmt: skip
    _wait_until((tmp_path / "began").exists)
    started = psutil.Process(harness.pid).children(recursive=True)
    harness.kill()
    harness.wait()
    folder = tmp_path / "demo" / "quick"
    assert list((folder / "partial").iterdir()), "a killed harness cannot clean up"
    assert subprocess.run(_demo(tmp_path, "echo 7"), check=False).returncode == 0
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
    assert not list((folder / "scratch").iterdir())
    assert not list((folder / "partial").iterdir())
    assert len(list((folder / "runs").iterdir())) == 1


def test_a_server_runs_beside_the_commands_and_is_stopped(tmp_path: Path) -> None:
    port = _free_port()
    server = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1")
    service = Service("server", server, lambda: _answers(port), seconds_to_start=60)
    asking = f"{sys.executable} -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:{port}\"); print(3)'"
    points = measure(campaign(Commands({1: asking}, service), (1,), 1), tmp_path).points()
    assert points[0].rows[0].values == {"rate_per_s": 3.0}
    assert not _answers(port)


@pytest.mark.parametrize(
    ("command", "ready", "reason"),
    [
        ("echo no port >&2; exit 1", False, "server died: ended with exit code 1"),
        ("sleep 1000", False, "server did not answer within 1 s"),
        ("sleep 1; exit 7", True, "server died: ended with exit code 7"),
    ],
)
def test_a_server_that_does_not_start_or_dies_fails_its_points(
    tmp_path: Path, command: str, ready: bool, reason: str
) -> None:
    service = Service("server", ("/bin/sh", "-c", command), lambda: ready, seconds_to_start=1)
    points = measure(campaign(Commands({1: "sleep 1000"}, service), (1, 2), 1), tmp_path).points()
    assert all(reason in point.failures[0].reason for point in points), "without a server no later point is measured"
    assert not _sleepers()


class Twice(Commands):
    """Measures every point a second time once all have been measured."""

    def steps(self, run: Run, place: Place) -> list[Step]:
        once = super().steps(run, place)
        return [*once, *(replace(step, name=f"again-{step.name}") for step in once)]


def test_a_server_that_dies_while_points_are_measured_again_fails_them_all(tmp_path: Path) -> None:
    dying = f"while [ ! -e {tmp_path}/measured-once ]; do sleep 0.1; done; exit 7"
    service = Service("server", ("/bin/sh", "-c", dying), lambda: True, seconds_to_start=1)
    last = f"echo 4; [ -e {tmp_path}/once ] && touch {tmp_path}/measured-once && sleep 1000; touch {tmp_path}/once"
    points = measure(campaign(Twice({1: last}, service), (1, 2), 1), tmp_path).points()
    assert [(len(point.rows), len(point.failures)) for point in points] == [(1, 1), (1, 1)]
    assert "ended with exit code 7" in points[1].failures[0].reason


def _demo(folder: Path, command: str) -> list[str]:
    """A harness of its own, as its signals must not reach the tests."""
    program = (
        "import sys; from pathlib import Path; from rich.console import Console\n"
        "from commands import Commands, campaign; from harness.executor import Setting, execute\n"
        "from harness.progress import Progress\n"
        f"of = campaign(Commands({{1: {command!r}}}), (1,), 1)\n"
        f"folder = Path({str(folder)!r})\n"
        "setting = Setting(Path('/'), folder, Path('/bin/sh'), 'demo', folder / 'lock')\n"
        "try:\n    execute(of, of.variants['quick'], setting, Progress(Console(quiet=True)))\n"
        "except KeyboardInterrupt:\n    sys.exit(130)\n"
    )
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]
    return ["env", f"PYTHONPATH={os.pathsep.join(paths)}", sys.executable, "-c", program]


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "gave up waiting"
        threading.Event().wait(0.05)


def _sleepers() -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if process.name() == "sleep"]


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _refuse() -> None:
    raise OSError("the kernel will not")


def test_what_cannot_be_prepared_is_not_measured_and_what_was_prepared_is_tidied_up(tmp_path: Path) -> None:
    class Unprepared(Commands):
        def steps(self, run: Run, place: Place) -> list[Step]:
            first, second = super().steps(run, place)
            return [replace(first, prepare=_refuse), second]

    tidied: list[str] = []
    server = Service("server", ("sleep", "60"), lambda: True, 5.0, tidy=lambda: tidied.append("server"))
    first, second = measure(campaign(Unprepared(service=server), repetitions=1), tmp_path).points()
    assert not first.rows
    assert "cannot be prepared: the kernel will not" in first.failures[0].reason
    assert len(second.rows) == 1
    assert tidied == ["server"]
    half = Service("half", ("sleep", "60"), lambda: True, 5.0, prepare=_refuse, tidy=lambda: tidied.append("half"))
    results = measure(campaign(Commands(service=half), repetitions=1), tmp_path / "half")
    assert not any(point.rows for point in results.points())
    assert tidied == ["server", "half"]


@pytest.mark.parametrize("known", [True, False])
def test_who_watches_is_told_which_step_runs_and_of_how_many_where_that_is_known(tmp_path: Path, known: bool) -> None:
    class Stepwise(Commands):
        def steps(self, run: Run, place: Place) -> Iterable[Step]:  # type: ignore[override]
            steps = super().steps(run, place)
            return steps if known else iter(steps)

    server = Service("server", ("sleep", "60"), lambda: True, 5.0)
    of = campaign(Stepwise(service=server))
    run, told = runs(of, of.variants["quick"])[0], list[str]()
    place = Place(tmp_path / "scratch", tmp_path / "kept", tmp_path, Path("/bin/sh"))
    Execution(of.experiment, run, place, tmp_path / "done", {}, told.append).execute()
    total = " of 3" if known else ""
    assert list(dict.fromkeys(told)) == [f"step 2{total}: size-1", f"step 3{total}: size-2"]
