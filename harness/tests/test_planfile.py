"""Campaign files: those of the project can be read, and each kind of mistake is refused with its line."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import planfile
from harness.errors import HarnessError, PlanError
from harness.fields import Field
from harness.plan import runs
from harness.run import rotated

CAMPAIGNS = Path(__file__).resolve().parents[2] / "campaigns"

GOOD = """\
title = "Depths"
question = "How many?"
source = "a paper"
experiment = "queue-depth"

[quick]
stores = ["aiodb"]
phases = ["bench"]
repetitions = 3

[quick.axes]
index = ["lmdb", "hash"]
backend = ["uring"]
threads = [1]
depth = [
    1,
    64,
]

[quick.parameters]
pairs = 10_000

[night]
stores = ["aiodb"]
phases = ["bench"]
repetitions = 5
axes = { index = ["lmdb"], backend = ["uring"], threads = [1], depth = [64] }
"""


def refusal_of(folder: Path, text: str) -> str:
    """The line and reason for which a file with this text is refused."""
    path = folder / "depths.toml"
    path.write_text(text)
    with pytest.raises(PlanError) as refused:
        planfile.read(path)
    error = refused.value
    assert str(error).startswith(f"{path}:{error.line}: ")
    return str(error).removeprefix(f"{path}:")


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.toml")), ids=lambda path: str(path.stem))
def test_the_projects_campaigns_can_be_read_and_quick_ones_are_quick(path: Path) -> None:
    campaign = planfile.read(path)
    for quick in (of for of in campaign.variants.values() if of.size == "quick"):
        assert campaign.expected_seconds(quick) <= 600, quick.name
        assert "smoke test" in quick.left_out[0]


@pytest.mark.parametrize("path", sorted(CAMPAIGNS.glob("*.toml")), ids=lambda path: str(path.stem))
def test_a_night_takes_65_minutes_at_most_and_repeats(path: Path) -> None:
    campaign = planfile.read(path)
    for night in (of for of in campaign.variants.values() if of.size == "night"):
        assert campaign.expected_seconds(night) <= 65 * 60, night.name
        assert night.repetitions >= 3


def test_a_slice_has_levels_of_its_own_and_may_ask_something_else(tmp_path: Path) -> None:
    path = tmp_path / "depths.toml"
    path.write_text(GOOD + GOOD[GOOD.index("[night]") :].replace("[night]", '[night-deep]\nquestion = "Deeper?"'))
    campaign = planfile.read(path)
    assert campaign.slices() == ["deep"]
    deep = campaign.variants["night-deep"]
    assert (deep.size, deep.slice) == ("night", "deep")
    assert campaign.asking("night-deep").question == "Deeper?"
    assert campaign.asking("night-deep").source == campaign.source
    assert campaign.asking("night").question == campaign.asking("gone").question == "How many?"


def test_each_repetition_begins_with_another_run(tmp_path: Path) -> None:
    path = tmp_path / "depths.toml"
    path.write_text(GOOD)
    campaign = planfile.read(path)
    planned = runs(campaign, campaign.variants["quick"])
    indexes = [run.levels["index"] for run in planned]
    assert indexes == ["lmdb", "hash", "hash", "lmdb", "lmdb", "hash"]
    assert [run.repetition for run in planned] == [1, 1, 2, 2, 3, 3]
    assert rotated([1, 2, 3], 4) == [2, 3, 1]
    assert rotated([], 1) == []


def test_a_plan_has_what_its_file_says(tmp_path: Path) -> None:
    path = tmp_path / "depths.toml"
    path.write_text(GOOD)
    campaign = planfile.read(path)
    quick = campaign.variants["quick"]
    assert (campaign.name, quick.repetitions, quick.stores) == ("depths", 3, ("aiodb",))
    assert quick.parameters["pairs"] == 10_000
    assert quick.parameters["round_ms"] == 1000, "the default of a parameter that the file does not name"
    planned = runs(campaign, quick)
    assert [(run.levels["index"], run.repetition) for run in planned] == [
        ("lmdb", 1), ("hash", 1), ("hash", 2), ("lmdb", 2), ("lmdb", 3), ("hash", 3),
    ]  # fmt: skip
    assert [point["depth"] for point in planned[0].points()] == [1, 64]
    assert len({run.id for run in planned}) == len(planned)


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('title = "Depths"\n', "", "1: `title` must be a text"),
        ('"queue-depth"', '"queue-length"', "4: experiment 'queue-length' is unknown"),
        ('source = "a paper"', 'sauce = "a paper"', "3: `sauce` is unknown here"),
        ('["aiodb"]\nphases', '["rocksdb"]\nphases', "7: store 'rocksdb' is unknown here: choose from aiodb"),
        ('phases = ["bench"]', 'phases = ["load"]', "8: phase 'load' is unknown here"),
        ("repetitions = 3", "repetitions = 0", "9: repetitions: 0 is too small"),
        ("repetitions = 3\n", "", "6: `repetitions` is missing"),
        ('"lmdb", "hash"', '"lmdb", "btree"', "12: axis index: 'btree' is unknown: choose from lsm, lmdb, hash"),
        ('["uring"]\nthreads', "[]\nthreads", "13: `backend` must be a list of 1 to 64"),
        ("threads = [1]\ndepth = [\n", "threads = [true]\ndepth = [\n", "14: axis threads: True is no whole number"),
        ("    64,\n", "    9999,\n", "17: axis depth: 9999 is too large: at most 4096"),
        ("    64,\n", "    1,\n", "16: 1 is listed twice"),
        ("threads = [1]\ndepth = [\n", "depth = [\n", "11: axis `threads` is missing"),
        ("pairs = 10_000", "pears = 10_000", "21: `pears` is unknown here"),
        ("pairs = 10_000", 'pairs = "many"', "21: parameter pairs: 'many' is no whole number"),
        ("[quick.axes]", "[quick.axis]", "11: `axis` is unknown here"),
        ("[night]", "[nigth]", "23: `nigth` is unknown here"),
        ("[night]", "[night_deep]", "23: `night_deep` is unknown here"),
        ("[night]\n", '[night]\nquestion = ""\n', "24: `question` must be a text"),
        ("threads = [1], depth = [64] }", "threads = [1], depth = [0] }", "27: axis depth: 0 is too small"),
        ("repetitions = 3", "repetitions = ", "9: not TOML"),
    ],
)
def test_a_mistake_is_refused_with_its_line(tmp_path: Path, old: str, new: str, refusal: str) -> None:
    assert old in GOOD
    assert refusal_of(tmp_path, GOOD.replace(old, new, 1)).startswith(refusal)


def test_more_memory_than_there_is_is_refused_with_the_line_that_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = CAMPAIGNS / "copy-size.toml"
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=10**9))
    with pytest.raises(PlanError, match="which this machine has not") as refused:
        planfile.read(path)
    assert path.read_text().splitlines()[refused.value.line - 1].startswith("pairs = ")


def test_a_missing_file_and_one_that_is_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="No such file"):
        planfile.read(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(HarnessError, match="not UTF-8"):
        planfile.read(tmp_path / "bytes.toml")


def test_a_changed_parameter_changes_the_runs_name(tmp_path: Path) -> None:
    names = []
    for pairs in ("10_000", "20_000"):
        path = tmp_path / "depths.toml"
        path.write_text(GOOD.replace("10_000", pairs))
        campaign = planfile.read(path)
        names.append(runs(campaign, campaign.variants["quick"])[0].id)
    assert names[0] != names[1]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_cannot_be_counted_with_is_refused(value: float) -> None:
    refusal = Field(float, "a part", least=0, most=1).refusal(value)
    assert refusal is not None
    assert "no number to count with" in refusal
