"""A whole campaign over the real program, in well under a minute on an idle machine."""

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
AIODB = Path(os.environ.get("AIODB", CHECKOUT / "target" / "release" / "aiodb"))

SMALL = """\
title = "Small"
question = "Does it work from the file to the report?"
source = "nobody"
experiment = "queue-depth"

[quick]
stores = ["aiodb"]
phases = ["bench"]
repetitions = 2

[quick.axes]
index = ["hash"]
backend = ["threads"]
threads = [1]
depth = [1, 16]

[quick.parameters]
pairs = 2000
round_ms = 20
max_rounds = 2
max_seconds = 1

[night]
stores = ["aiodb"]
phases = ["bench"]
repetitions = 1
axes = { index = ["hash"], backend = ["threads"], threads = [1], depth = [1] }
"""


def harness(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the command as a person does."""
    command = [sys.executable, "-m", "harness", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT / "harness" / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def test_a_small_campaign_ends_with_a_report_and_a_second_call_measures_nothing(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    results = tmp_path / "results"
    # A campaign that happens to run on this machine keeps no test from running.
    arguments = ("run", path, "--quick", "--results", results, "--aiodb", AIODB, "--lock", tmp_path / "lock")
    first = harness(*arguments)
    assert first.returncode == 0, first.stderr
    assert "small quick: 2 runs to measure" in first.stderr
    report = results / "small" / "quick" / "report.html"
    text = report.read_text()
    assert "16 gets in flight" in text
    assert "failed" not in first.stdout
    assert (results / "index.html").exists()
    assert not list((results / "small" / "quick" / "scratch").iterdir())
    second = harness(*arguments)
    assert second.returncode == 0, second.stderr
    assert "0 runs to measure, 2 finished before" in second.stderr


def test_mistakes_are_one_line_without_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.replace("depth = [1, 16]", "depth = [0]"))
    refused = harness("run", path, "--quick", "--results", tmp_path, "--aiodb", AIODB)
    assert refused.returncode == 2
    assert refused.stderr == f"harness: {path}:15: axis depth: 0 is too small: at least 1\n"
    unknown = harness("check", "nothing")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith(
        "harness: there is no campaign 'nothing': choose from clients-disk, clients-memory, consistency"
    )
    path.write_text(SMALL)
    own = ("--results", tmp_path, "--lock", tmp_path / "lock")
    missing = harness("run", path, "--quick", *own, "--aiodb", tmp_path / "none")
    assert missing.returncode == 2
    assert "none is missing" in missing.stderr


def test_a_slice_that_a_campaign_has_not_is_named(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    refused = harness("needs", path, "--slice", "large")
    assert refused.returncode == 2
    assert refused.stderr == f"harness: {path}: there is no `night-large`: it has quick, night\n"
    assert harness("needs", path).stdout == "release\n"


def test_check_says_what_would_run(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    checked = harness("check", path)
    assert checked.returncode == 0
    assert checked.stdout.startswith("small quick: 2 runs, about ")
    assert list(tmp_path.iterdir()) == [path]
