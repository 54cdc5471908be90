"""The report: what is in it, and that it stands alone."""

import json
import re
import xml.etree.ElementTree
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from commands import Commands, campaign, results_in

from harness.errors import HarnessError
from harness.experiments.base import Row
from harness.report.charts import compact, draw
from harness.report.figures import Figure, Look, Series
from harness.report.index import write_index
from harness.report.numbers import number
from harness.report.page import verdict_of, write_report
from harness.report.publication import publish
from harness.results import Failure, Outcome, Results, read_outcome, read_results, write_outcome

# Where the commands of these results were run.
CHECKOUT = Path("/some/checkout")


class _Page(HTMLParser):
    """Collects what a page asks of others, and its text; raises where tags do not match."""

    VOID = frozenset({"meta", "br", "path", "use", "rect"})

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(results: Results) -> _Page:
    page = _Page()
    page.feed(write_report(results, CHECKOUT).read_text())
    assert not page.open
    return page


def test_a_report_stands_alone_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    results = results_in(tmp_path, campaign(Commands()), [100.0, 101.0])
    write_index(tmp_path)
    page = page_of(results)
    outside = [reference for reference in page.references if not reference.startswith("#")]
    assert outside
    for reference in outside:
        assert not re.match(r"\w+:|//", reference), f"{reference} needs a network"
        assert (results.folder / reference).exists()


def test_a_report_says_what_was_measured_how_and_where(tmp_path: Path) -> None:
    page = page_of(results_in(tmp_path, campaign(Commands()), [100.0, 100.1]))
    for words in ("A <title>", "shell size=1", "100", "sufficient", "a processor", "0123456789ab", "harness run demo",
                  "sizes above two", "echo <1> & done", "durability", "cores idle for 40%"):  # fmt: skip
        assert words in page.text


def test_published_results_stand_alone_and_name_no_place_of_this_machine(tmp_path: Path) -> None:
    failure = Failure("size-1", f"no {CHECKOUT}/here", ("why",), ())
    results = results_in(tmp_path / "raw", campaign(Commands()), [100.0, 101.0], failure)
    folder = publish(results, tmp_path / "published", CHECKOUT)
    page = _Page()
    page.feed((folder / "report.html").read_text())
    assert [reference for reference in page.references if not reference.startswith("#")] == ["../../index.html"]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["points"][0]["values"]["rate_per_s"]["values"] == [100.0, 101.0]
    assert summary["origin"]["identity"]["cpu"] == "a processor"
    published = [path.read_text() for path in (tmp_path / "published").rglob("*.*") if path.is_file()]
    assert len(published) == 4, "a report, a summary, a figure and the index"
    assert not any(str(CHECKOUT) in text for text in published)
    assert "no here" in published[0] + published[1] + published[2] + published[3]


def test_a_figure_of_its_own_has_its_colours_with_it(tmp_path: Path) -> None:
    results = results_in(tmp_path / "raw", campaign(Commands()), [100.0, 101.0])
    text = (publish(results, tmp_path, CHECKOUT) / "figure-1.svg").read_text()
    xml.etree.ElementTree.fromstring(text)
    for name in set(re.findall(r"var\((--\w+)\)", text)):
        assert f"{name}:" in text


def test_wide_intervals_make_a_campaign_insufficient(tmp_path: Path) -> None:
    results = results_in(tmp_path, campaign(Commands()), [100.0, 200.0])
    assert verdict_of(results) == ("insufficient at 2 of 2 points", "warn")
    assert "insufficient" in page_of(results).text


def test_one_repetition_is_insufficient(tmp_path: Path) -> None:
    results = results_in(tmp_path, campaign(Commands(), repetitions=1), [100.0])
    assert verdict_of(results) == ("insufficient at 2 of 2 points, each measured once", "warn")


def test_missing_runs_are_said(tmp_path: Path) -> None:
    results = results_in(tmp_path, campaign(Commands()), [])
    assert verdict_of(results) == ("2 not measured yet", "warn")
    assert "repetition 2: not measured yet" in page_of(results).text


def test_failures_are_shown_with_their_log(tmp_path: Path) -> None:
    failure = Failure("size-1", "ended with exit code 3", ("0.1\tit <broke>",), ({"size": 1},))
    results = results_in(tmp_path, campaign(Commands()), [100.0, 100.0], failure)
    assert verdict_of(results) == ("1 of 2 points failed", "bad")
    assert "it <broke>" in page_of(results).text
    assert "failed in 2 runs" in page_of(results).text


def test_the_index_lists_each_report(tmp_path: Path) -> None:
    write_report(results_in(tmp_path, campaign(Commands()), [100.0, 100.0]), CHECKOUT)
    text = write_index(tmp_path).read_text()
    assert "Is it so?" in text, "what was asked"
    assert "sufficient: every interval within 10%" in text, "and how sure the answer is"
    assert 'href="demo/quick/report.html"' in text


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    row = Row({"size": 1}, {"rate_per_s": 2.5}, (0.0, 1.0), 7.0, ("not flat",), ((0.5, 2.0), (1.0, 3.0)))
    failure = Failure("size-2", "died", ("a line",), ({"size": 2},))
    outcome = Outcome("id", "shell", 1, "2026-01-31T12:00:00Z", 1.5, (("sh",),), (row,), (failure,))
    write_outcome(tmp_path, outcome)
    assert read_outcome(tmp_path) == outcome


@pytest.mark.parametrize(
    "text", ["", "{}", '{"format": 2}', '{"format": 1, "run_id": "x"}', '{"format": 1, "rows": 5}']
)
def test_a_damaged_result_is_refused_and_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(HarnessError, match=r"run\.json"):
        read_outcome(tmp_path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    of = campaign(Commands())
    with pytest.raises(HarnessError, match="no results yet"):
        read_results(tmp_path, of, of.variants["quick"], [])


def test_drawings_take_their_colours_from_the_page() -> None:
    ours = Series("ours", ((1, 10, 5, 15), (64, 20, 18, 22)))
    ceiling = Series("device", ((1, 11, 11, 11), (64, 25, 25, 25)), Look.CEILING)
    paper = Series("paper", ((64, 30, 30, 30),), Look.PUBLISHED)
    empty = Series("failed", ())
    drawn = draw(Figure("A", "b", "x", "y", (ours, ceiling, paper, empty), x_log=True, level=(1.0, "one")), "salt")
    assert drawn.count("<svg") == 2
    assert not re.search(r"#0a0[bc]0\d", drawn)
    assert {"--c0", "--ceiling", "--published", "--grid"} <= set(re.findall(r"var\((--\w+)\)", drawn))
    ids = re.findall(r' id="(\w+)"', drawn)
    referred = set(re.findall(r"#(\w+)[\")]", drawn))
    assert referred <= set(ids)


def test_bars_are_drawn_over_categories() -> None:
    both = (Series("one", ((0, 10, 9, 11), (1, 20, 18, 22))), Series("two", ((0, 5, 4, 6),)))
    drawn = draw(Figure("A", "b", "", "y", both, categories=("A", "C")), "salt")
    assert ">A<" in drawn
    assert ">C<" in drawn


def test_long_names_of_categories_are_turned_where_they_would_overlap() -> None:
    names = tuple(f"a store of {number} nodes" for number in range(5))
    bars = (Series("one", tuple((number, 10.0, 9.0, 11.0) for number in range(5))),)
    drawn = draw(Figure("A", "b", "", "y", bars, categories=names), "salt")
    wide, narrow = drawn.split('<div class="narrow">')
    assert "rotate(-30" not in wide
    assert narrow.count("rotate(-30") == 5


def test_a_stall_has_its_mark_where_a_logarithm_has_no_place_for_it() -> None:
    def marks(rates: Sequence[float]) -> int:
        line = tuple((float(second), rate, rate, rate) for second, rate in enumerate(rates))
        return draw(Figure("A", "b", "x", "y", (Series("one", line),), y_log=True), "salt").count("<use")

    assert marks([10.0, 0.0, 0.0, 20.0]) == marks([10.0, 15.0, 15.0, 20.0])


@pytest.mark.parametrize(
    ("value", "short", "long"),
    [(0, "0", "0"), (0.5, "0.5", "0.5"), (64, "64", "64.0"), (1024, "1024", "1,024"), (20_000, "20K", "20,000"),
     (370_000, "370K", "370,000"), (1.5e6, "1.5M", "1,500,000"), (2e9, "2G", "2,000,000,000")],
)  # fmt: skip
def test_numbers_are_short(value: float, short: str, long: str) -> None:
    assert compact(value) == short
    assert number(value) == long


def test_a_doubtful_point_is_no_good_verdict(tmp_path: Path) -> None:
    results = results_in(tmp_path, campaign(Commands(), sizes=(1,)), [100.0, 100.0])
    assert verdict_of(results)[1] == "good"
    for mark in ("not flat within 60 s", "disturbed: processes of others computed"):
        outcomes = {
            run_id: replace(outcome, rows=tuple(replace(row, marks=(mark,)) for row in outcome.rows))
            for run_id, outcome in results.outcomes.items()
        }
        assert verdict_of(replace(results, outcomes=outcomes)) == ("not flat, or disturbed, at 1", "warn")
