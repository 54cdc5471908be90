"""Room on the disk: refused before anything starts, and a plain end where it is used up all the same."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import PRINT_RATE, Commands, campaign, measure

from harness import disk, execution
from harness.disk import LEAST_FREE_BYTES, cannot_go_on, require_room
from harness.errors import HarnessError
from harness.outcomes import Outcome
from harness.plan import runs
from harness.planfile import read
from harness.processes import Command
from harness.results import is_finished
from harness.run import Run
from harness.sampling import Sampler

CAMPAIGNS = Path(__file__).resolve().parents[2] / "campaigns"


class Large(Commands):
    """Says that it needs more than any disk has, unless told otherwise."""

    needs = 1e18

    def needed_bytes(self, run: Run) -> float:
        return self.needs


def test_too_little_room_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"demo needs about 1000000000\.\d GB on the disk of .*, and .* are free"):
        measure(campaign(Large()), tmp_path)
    assert not (tmp_path / "demo").exists()


def test_what_is_finished_needs_no_room(tmp_path: Path) -> None:
    experiment = Large()
    experiment.needs = 0
    measure(campaign(experiment), tmp_path)
    experiment.needs = Large.needs
    measure(campaign(experiment), tmp_path)


@pytest.mark.parametrize(("free", "refused"), [(1e9 - 1, True), (1e9 + LEAST_FREE_BYTES, False)])
def test_room_is_held_against_what_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: float, refused: bool
) -> None:
    monkeypatch.setattr(disk, "free_bytes", lambda folder: free)
    if refused:
        with pytest.raises(HarnessError, match=r"needs about 1\.1 GB"):
            require_room(tmp_path, "demo", 1e9)
    else:
        require_room(tmp_path, "demo", 1e9)


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.toml")), ids=lambda path: str(path.stem))
def test_every_campaign_says_how_much_it_needs(path: Path) -> None:
    of = read(path)
    needed: dict[str, list[float]] = {"quick": [], "night": []}
    for variant in of.variants.values():
        needed[variant.size] += [of.experiment.needed_bytes(run) for run in runs(of, variant)]
    assert all(10e6 < bytes_ < 20e9 for bytes_ in needed["quick"]), "a quick campaign fits any disk"
    assert all(10e6 < bytes_ < 30e9 for bytes_ in needed["night"]), "a night fits the disk of a small machine"
    assert max(needed["quick"]) <= max(needed["night"])


def _full_once(there: Callable[[], bool]) -> Callable[[Path], float]:
    return lambda folder: 1000 if there() else 1e12


def _nothing_is_left(results: Path) -> bool:
    return not any(list((results / "demo" / "quick" / kind).iterdir()) for kind in ("scratch", "partial"))


@pytest.mark.parametrize("command", ["sleep 1000", "exit 1"], ids=["watched", "the store notices first"])
def test_a_disk_that_gets_full_ends_the_campaign_and_keeps_what_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    full = tmp_path / "full"
    monkeypatch.setattr(disk, "free_bytes", _full_once(full.exists))
    first = tmp_path / "first"
    of = campaign(Commands({1: f"[ -e {first} ] && touch {full} && {command}; touch {first}; {PRINT_RATE}"}), (1,), 2)
    with pytest.raises(HarnessError, match=r"is full, 0\.0 MB are free: shell repetition 2 was ended"):
        measure(of, tmp_path)
    planned = runs(of, of.variants["quick"])
    assert [is_finished(tmp_path / "demo" / "quick", run) for run in planned] == [True, False]
    assert _nothing_is_left(tmp_path)
    full.unlink()
    first.unlink()
    assert len(measure(of, tmp_path).points()[0].rows) == 2, "the same command measures the rest"


def test_a_result_that_cannot_be_written_is_said_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, outcome: Outcome) -> None:
        raise OSError(28, "No space left on device", str(folder / "run.json"))

    of = campaign(Commands(), (1,), 1)
    monkeypatch.setattr(execution, "write_outcome", refuse)
    with pytest.raises(HarnessError, match=r"cannot write or read .*run\.json: No space left .* free some space"):
        measure(of, tmp_path)
    assert _nothing_is_left(tmp_path)
    assert not any(is_finished(tmp_path / "demo" / "quick", run) for run in runs(of, of.variants["quick"]))


def test_a_log_that_cannot_be_written_does_not_stop_whom_it_is_of(tmp_path: Path) -> None:
    noisy = ("/bin/sh", "-c", "head -c 1000000 /dev/zero >&2; echo done")
    command = Command(noisy, tmp_path / "out", Path("/dev/full"), 0.0, tmp_path, {})
    assert command.wait(60, lambda: None) == 0
    command.stop()
    assert command.log_failure is not None
    assert command.log_failure.filename == "/dev/full"
    assert (tmp_path / "out").read_text() == "done\n"


LIMITED = """\
import resource, sys
from pathlib import Path
from rich.console import Console
from commands import Commands, campaign
from harness.errors import HarnessError
from harness.executor import Setting, execute
from harness.progress import Progress
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
of = campaign(Commands({1: "yes a long line that fills the log | head -c 1000000 >&2; sleep 1000"}), (1,), 1)
folder = Path(sys.argv[1])
try:
    setting = Setting(Path("/"), folder, Path("/bin/sh"), "demo", folder / "lock")
    execute(of, of.variants["quick"], setting, Progress(Console(quiet=True)))
except HarnessError as error:
    sys.exit(str(error))
"""


def test_a_log_that_is_full_ends_the_run_at_once(tmp_path: Path) -> None:
    """A real limit of the kernel, in a harness of its own, which it would otherwise stay with."""
    paths = os.pathsep.join(str(Path(__file__).parents[up] / name) for up, name in ((0, ""), (1, "src")))
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "size-1.log: File too large: shell repetition 1 was ended" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert _nothing_is_left(tmp_path)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device"), "cannot write or read a file of the run: No space left"),
        (ValueError("odd"), "have ended"),
    ],
)
def test_samples_that_end_do_not_go_unnoticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def counters(sampler: Sampler) -> None:
        raise error

    monkeypatch.setattr(Sampler, "_counters", counters)
    began = time.monotonic()
    with pytest.raises(HarnessError, match=said):
        measure(campaign(Commands({1: "sleep 1000"}), (1,), 1), tmp_path)
    assert time.monotonic() - began < 500, "not only once the step is over"
    assert _nothing_is_left(tmp_path)


def test_another_reason_is_not_said_to_be_a_full_disk() -> None:
    message = str(cannot_go_on(OSError(13, "Permission denied", "/x"), "shell"))
    assert message.startswith("cannot write or read /x: Permission denied: shell was ended")
    assert "mend that" in message
