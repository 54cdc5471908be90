"""Limits by control groups, and what a store that dies of one leaves."""

import dataclasses
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from commands import Commands, campaign, measure

from harness.experiments.memory_full import MemoryFull
from harness.limits import PREFIX, MemoryLimit, leftover_groups, memory_limits_missing, remove_group, unwritable
from harness.processes import Command
from harness.rows import Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Step

needs_limits = pytest.mark.skipif(memory_limits_missing() is not None, reason=str(memory_limits_missing()))

LIMIT_BYTES = 64 << 20
EATER = "import time; held = bytearray(256 << 20); time.sleep(20)"


def start(tmp_path: Path, limit: MemoryLimit, *command: str) -> Command:
    return Command(command, tmp_path / "out", tmp_path / "log", 0.0, tmp_path, {}, limit)


@pytest.mark.parametrize(("user", "said"), [(1000, "only root may make control groups"), (0, "is read-only")])
def test_why_groups_cannot_be_made_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, said: str
) -> None:
    assert unwritable(tmp_path) is None
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert said in str(unwritable(tmp_path))


@needs_limits
def test_a_process_beyond_its_memory_is_killed_and_that_is_known(tmp_path: Path) -> None:
    limit = MemoryLimit(LIMIT_BYTES)
    command = start(tmp_path, limit, "python3", "-c", EATER)
    assert command.wait(60, lambda: None) == -9
    assert command.ran_out_of_memory()
    command.stop()
    assert not [group for group in leftover_groups() if group.name.startswith(f"{PREFIX}{os.getpid()}-")]


@needs_limits
def test_a_process_within_its_memory_lives_and_its_group_goes_with_it(tmp_path: Path) -> None:
    limit = MemoryLimit(LIMIT_BYTES)
    command = start(tmp_path, limit, "sh", "-c", "cat /proc/self/cgroup")
    assert command.wait(60, lambda: None) == 0
    assert not command.ran_out_of_memory()
    command.stop()
    name = next(line for line in (tmp_path / "out").read_text().splitlines() if PREFIX in line).rpartition("/")[2]
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{name}"))


@needs_limits
def test_the_group_of_a_harness_that_is_gone_is_known_and_removed() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    mine = MemoryLimit(LIMIT_BYTES)
    left = mine._group.with_name(f"{PREFIX}{ended.pid}-1")
    left.mkdir()
    assert left in leftover_groups()
    assert mine._group not in leftover_groups(), "its harness runs"
    remove_group(left)
    mine.remove()
    assert not left.exists()
    assert not mine._group.exists()


class Mortal(Commands):
    """One command that may die, and says what it did until then."""

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        return [dataclasses.replace(step, memory_bytes=LIMIT_BYTES, may_die=True) for step in super().steps(run, place)]

    def rows(self, run: Run, finished: Finished, place: Place) -> list[Row]:
        assert finished.death is not None
        (point,) = finished.step.points
        return [Row(point, {"rate_per_s": float(finished.output)}, (0.0, 1.0), marks=(finished.death,))]


@needs_limits
def test_a_death_is_a_result_where_it_may_be(tmp_path: Path) -> None:
    of = campaign(Mortal({1: f"echo 7; exec python3 -c '{EATER}'"}), sizes=(1,), repetitions=1)
    (point,) = measure(of, tmp_path).points()
    assert not point.failures
    assert point.rows[0].values["rate_per_s"] == 7
    assert "killed by the kernel for using up its 64 MiB of memory" in point.marks()


def test_a_death_is_a_failure_where_it_may_not(tmp_path: Path) -> None:
    of = campaign(Commands({1: "kill -9 $$"}), sizes=(1,), repetitions=1)
    (point,) = measure(of, tmp_path).points()
    assert not point.rows
    assert point.failures


def test_a_store_that_fails_without_dying_has_no_result(tmp_path: Path) -> None:
    step = Step("insert", ("x",), 1.0, ({"threads": 1},), may_die=True)
    run = Run("aiodb", {"threads": 1}, MappingProxyType({}), ("load",), {}, 1)
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    with pytest.raises(BadOutputError, match="exit code 1"):
        MemoryFull().rows(run, Finished(step, "", (), 0.0, 1.0, "ended with exit code 1"), place)
