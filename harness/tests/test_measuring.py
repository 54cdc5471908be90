"""Which of the harness's files results depend on."""

import dataclasses
from pathlib import Path

import pytest

from harness.host import identity
from harness.measuring import PACKAGE, READING, measuring_files


def files_of(experiment: str) -> set[str]:
    return set(measuring_files(PACKAGE / "experiments" / f"{experiment}.py"))


@pytest.mark.parametrize("name", ["queue_depth", "cassandra", "ycsb", "grow", "memory_full"])
def test_results_depend_on_what_measures_and_not_on_what_draws(name: str) -> None:
    files = files_of(name)
    assert {
        f"experiments/{name}.py",
        "experiments/base.py",
        "plan.py",
        "execution.py",
        "processes.py",
        "sampling.py",
    } <= files
    assert not [file for file in files if "report" in file or Path(file).stem.endswith(READING)]


def test_results_depend_on_no_other_experiment_but_one_that_is_used() -> None:
    assert "experiments/grow.py" not in files_of("cassandra")
    assert "experiments/cassandra.py" in files_of("grow")
    assert {"flatness.py", "ycsb_output.py", "stores/redis.py"} <= files_of("ycsb")
    assert "flatness.py" not in files_of("queue_depth")
    assert "stores/redis.py" not in files_of("cassandra"), "the client knows no stores"


def test_what_only_reads_is_known_by_names_that_there_are() -> None:
    modules = [path.relative_to(PACKAGE).with_suffix("").parts for path in PACKAGE.rglob("*.py")]
    for name in READING:
        assert any(word.endswith(name) for words in modules for word in words), name


def test_a_changed_file_is_another_identity(tmp_path: Path) -> None:
    measuring = tmp_path / "own.py"
    found = []
    for text in ("a = 1", "a = 2", "a = 1"):
        measuring.write_text(text)
        found.append(identity(tmp_path, [Path("/bin/sh")], {"own.py": measuring}))
    assert found[0] == found[2] != found[1]
    assert set(found[0].programs) == {"sh", "harness"}
    assert dataclasses.replace(found[1], programs=found[0].programs) == found[0]
