"""What is published of a campaign, and how it is read again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Commands, campaign, results_in

from harness import planfile
from harness.errors import HarnessError
from harness.outcomes import Failure
from harness.plan import Campaign
from harness.report.answers.registry import answer_of
from harness.report.evidence import raw_evidence
from harness.report.publication import SERIES, SUMMARY, is_published, publish, read_published, read_with_evidence
from harness.report.published_pages import best_folders, published_folders, read_all, write_reports
from harness.results import Results

CHECKOUT = Path("/some/checkout")
REPOSITORY = Path(__file__).parents[2]
PUBLISHED = REPOSITORY / "results"
MOST_BYTES = 3_000_000
CAMPAIGN = campaign(Commands(), repetitions=3)


def measured(folder: Path) -> Results:
    failure = Failure("size-1", f"no {CHECKOUT}/here", ("why",), ())
    results = results_in(folder, CAMPAIGN, [100.0, 101.0, 103.0], failure)
    curve = tuple((float(second), 100.0) for second in range(2000))
    outcomes = {
        run_id: replace(
            of,
            rows=tuple(
                replace(row, series=curve, percentiles_us={"read": ((50.0, 5.0), (99.0, 9.5))}, step="size-1")
                for row in of.rows
            ),
        )
        for run_id, of in results.outcomes.items()
    }
    return replace(results, outcomes=outcomes)


def repository_campaign(name: str) -> Campaign:
    return planfile.read(REPOSITORY / "campaigns" / f"{name}.toml")


def test_what_is_published_is_small_and_names_no_place_of_this_machine(tmp_path: Path) -> None:
    folder = publish(measured(tmp_path / "raw"), tmp_path / "published", CHECKOUT)
    files = sorted(path.name for path in (tmp_path / "published").rglob("*.*") if path.is_file())
    assert files == [SERIES, SUMMARY]
    texts = [(folder / name).read_text() for name in files]
    assert not any(str(CHECKOUT) in text for text in texts)
    assert "no here" in texts[1]
    assert len(texts[0]) < 30_000, "6 curves of 2000 points are thinned"
    summary = json.loads(texts[1])
    assert summary["points"][0]["values"]["rate_per_s"] == {"median": 101.0, "interval": [100.0, 103.0], "n": 3}
    assert summary["origin"]["identity"]["cpu"] == "a processor"


def test_what_is_published_is_read_as_it_was_measured(tmp_path: Path) -> None:
    results = measured(tmp_path / "raw")
    folder = publish(results, tmp_path / "published", CHECKOUT)
    assert is_published(folder)
    again = read_with_evidence(folder, CAMPAIGN)
    evidence = raw_evidence(results)
    assert again.evidence.verdicts == evidence.verdicts
    assert [panel.title for panels in again.evidence.panels.values() for panel in panels] == [
        panel.title for panels in evidence.panels.values() for panel in panels
    ]
    for of, published in zip(results.points(), again.results.points(), strict=True):
        assert published.summary("rate_per_s") == of.summary("rate_per_s")
        assert [row.percentiles_us for row in published.rows] == [row.percentiles_us for row in of.rows]
        assert all(row.series[0] == (0.0, 100.0) and len(row.series) < 300 for row in published.rows)
    assert again.results.outcomes.keys() == results.outcomes.keys()
    assert publish(again.results, tmp_path / "twice", CHECKOUT, again.evidence).name == "quick"
    assert (tmp_path / "twice" / "demo" / "quick" / SUMMARY).read_text() == (folder / SUMMARY).read_text()


def older(tmp_path: Path) -> Path:
    """A summary of the form before."""
    folder = publish(measured(tmp_path / "raw"), tmp_path / "published", CHECKOUT)
    summary = json.loads((folder / SUMMARY).read_text())
    for point in summary["points"]:
        point["values"] = {"rate_per_s": {"median": 101.0, "half_width": 3.8, "values": [100.0, 101.0, 103.0]}}
        point["marks"] = ["disturbed: others (2 of 3)"]
        point["failures"] = []
    del summary["runs"]
    (folder / SUMMARY).write_text(json.dumps({**summary, "format": 1}))
    (folder / SERIES).unlink()
    return folder


def test_a_summary_of_the_form_before_is_converted(tmp_path: Path) -> None:
    results = read_published(older(tmp_path), CAMPAIGN)
    for point in results.points():
        summary = point.summary("rate_per_s")
        assert summary is not None
        assert (summary.median, summary.interval) == (101.0, (100.0, 103.0))
        assert point.marks() == ["disturbed: others (2 of 3)"]
    folder = publish(results, tmp_path / "again", CHECKOUT)
    assert json.loads((folder / SUMMARY).read_text())["format"] == 2
    assert [of.marks() for of in read_published(folder, CAMPAIGN).points()] == [of.marks() for of in results.points()]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 3}, r"summary\.json has format 3, this program knows 1 and 2"),
        ({"runs": [{}]}, r"summary\.json is no summary of demo"),
        ({"plan": {}}, r"summary\.json is no summary of demo"),
    ],
)
def test_a_summary_that_cannot_be_read_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    folder = publish(measured(tmp_path / "raw"), tmp_path / "published", CHECKOUT)
    summary = json.loads((folder / SUMMARY).read_text())
    (folder / SUMMARY).write_text(json.dumps({**summary, **change}))
    with pytest.raises(HarnessError, match=said):
        read_published(folder, CAMPAIGN)


def test_a_run_that_its_plan_does_not_make_is_named(tmp_path: Path) -> None:
    folder = publish(measured(tmp_path / "raw"), tmp_path / "published", CHECKOUT)
    for name in (SUMMARY, SERIES):
        (folder / name).write_text((folder / name).read_text().replace("_r3", "_r9"))
    with pytest.raises(HarnessError, match=r"summary\.json has the run shell_\w+_r9, which its plan does not make"):
        read_published(folder, CAMPAIGN)


def test_all_that_the_repository_publishes_is_small() -> None:
    assert sum(path.stat().st_size for path in PUBLISHED.rglob("*") if path.is_file()) < MOST_BYTES


@pytest.mark.parametrize("folder", published_folders(PUBLISHED), ids=str)
def test_no_line_is_named_after_a_folder_of_the_machine(folder: Path) -> None:
    panels = json.loads((PUBLISHED / folder / SERIES).read_text())["panels"]
    names = {name for shown in panels.values() for panel in shown for name, *_ in panel["lines"]}
    # Levels may have one, as `modes=memory/disk` does.
    assert not {name for name in names if name.startswith("/") or name.count("/") > 1}


@pytest.mark.parametrize("folder", published_folders(PUBLISHED), ids=str)
def test_the_points_of_a_summary_are_those_of_its_runs(folder: Path) -> None:
    found = read_published(PUBLISHED / folder, repository_campaign(folder.parent.name))
    summary = json.loads((PUBLISHED / folder / SUMMARY).read_text())
    assert len(found.points()) == len(summary["points"])
    for point, said in zip(found.points(), summary["points"], strict=True):
        assert (dict(point.levels), point.marks()) == (said["levels"], said["marks"])
        for name, of in said["values"].items():
            again = point.summary(name)
            assert again is not None
            assert len(again.values) == of["n"]
            assert [again.median, *(again.interval or ())] == pytest.approx([of["median"], *of["interval"]])


@pytest.mark.parametrize("folder", published_folders(PUBLISHED), ids=str)
def test_the_command_that_is_named_repeats_what_is_published(folder: Path) -> None:
    campaign = repository_campaign(folder.parent.name)
    declared, measured = campaign.variants[folder.name], read_published(PUBLISHED / folder, campaign).variant
    assert (measured.stores, measured.repetitions) == (declared.stores, declared.repetitions)
    assert dict(measured.axes) == dict(declared.axes)
    # A parameter that came later had its default.
    defaults = {name: of.default for name, of in campaign.experiment.parameters.items()}
    assert {**defaults, **measured.parameters} == dict(declared.parameters)


def test_every_published_report_answers_its_question(tmp_path: Path) -> None:
    index = write_reports(PUBLISHED, tmp_path, REPOSITORY, repository_campaign)
    folders = published_folders(PUBLISHED)
    assert Path("faster-disk/queue-depth/quick") in folders
    text = index.read_text()
    for folder in folders:
        assert f'href="{folder}/report.html"' in text
        report = (tmp_path / folder / "report.html").read_text()
        assert str(REPOSITORY) not in report
        assert '<p class="answer">' in report
    for published in read_all(PUBLISHED, repository_campaign).values():
        answer = answer_of(published.results)
        assert any(letter.isdigit() for letter in answer.sentence), "an answer has numbers"
        assert answer.shown
        assert answer.finding is not None


def test_of_several_variants_the_night_counts(tmp_path: Path) -> None:
    for folder in ("load/night", "load/quick", "load/quick-open", "grow/quick", "faster-disk/load/quick"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / SUMMARY).write_text("{}")
    assert best_folders(tmp_path) == {
        "load": Path("load/night"), "load/open": Path("load/quick-open"), "grow": Path("grow/quick"),
        "faster-disk/load": Path("faster-disk/load/quick"),
    }  # fmt: skip
