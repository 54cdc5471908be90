"""Signals: real ones, to a harness of its own, also while it cleans up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.interruption import Interruption

PROGRAM = """\
import sys, threading, time
from pathlib import Path
from rich.console import Console
from commands import Commands, campaign
from harness.executor import Setting, execute
from harness.experiments.base import Service
from harness.progress import Progress
folder, command = Path(sys.argv[1]), sys.argv[2]

def tidy():
    (folder / "cleaning").touch()
    time.sleep(1)
    (folder / "tidied").touch()

# The kernel may choose any thread for a signal.
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
server = Service("server", ("sleep", "1000"), lambda: True, 5.0, tidy=tidy)
of = campaign(Commands({1: f"setsid sleep 1000 & touch {folder}/began; {command}"}, server), (1,), 1)
try:
    setting = Setting(Path("/"), folder, Path("/bin/sh"), "demo", folder / "lock")
    execute(of, of.variants["quick"], setting, Progress(Console(quiet=True)))
except KeyboardInterrupt:
    sys.exit(130)
"""


def _start(folder: Path, command: str) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join(str(Path(__file__).parents[up] / name) for up, name in ((0, ""), (1, "src")))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), command], env={**os.environ, "PYTHONPATH": paths}
    )


def _wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "gave up waiting"
        time.sleep(0.02)


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_signal_does_not_end_the_cleaning_of_the_first(tmp_path: Path, second: signal.Signals) -> None:
    harness = _start(tmp_path, "sleep 1000")
    _wait_until((tmp_path / "began").exists)
    harness.send_signal(signal.SIGINT)
    _wait_until((tmp_path / "cleaning").exists)
    for _ in range(3):
        harness.send_signal(second)
        time.sleep(0.05)
    assert harness.wait(60) == 130
    assert (tmp_path / "tidied").exists()
    folder = tmp_path / "demo" / "quick"
    assert not [path for kind in ("scratch", "partial", "runs") for path in (folder / kind).iterdir()]


def test_a_run_that_is_cleaned_up_after_is_finished_before_the_campaign_ends(tmp_path: Path) -> None:
    harness = _start(tmp_path, "echo 7")
    _wait_until((tmp_path / "cleaning").exists)
    harness.send_signal(signal.SIGTERM)
    assert harness.wait(60) == 130
    assert (tmp_path / "tidied").exists()
    folder = tmp_path / "demo" / "quick"
    assert len(list((folder / "runs").iterdir())) == 1
    assert not list((folder / "scratch").iterdir())


def test_a_wish_is_heard_where_it_is_asked_for_and_nowhere_else() -> None:
    before = signal.getsignal(signal.SIGTERM)
    interruption = Interruption()
    with interruption.noted():
        interruption.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            interruption.check()
    assert signal.getsignal(signal.SIGTERM) is before
