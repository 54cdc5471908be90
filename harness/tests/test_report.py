"""The report: what its first screen says, what is below, and that it stands alone."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from commands import Commands, campaign, results_in

from harness.errors import HarnessError
from harness.outcomes import Failure, Outcome, read_outcome, write_outcome
from harness.report.index import Entry, write_index
from harness.report.numbers import number
from harness.report.page import write_report
from harness.report.picture import compact
from harness.report.quantities import interval, quantity
from harness.report.verdict import reasons, verdict_of
from harness.results import Results, read_results
from harness.rows import Row
from harness.statistics import summarize

# Where the commands of these results were run.
CHECKOUT = Path("/some/checkout")
THREE = [100.0, 101.0, 102.0]


class _Page(HTMLParser):
    """Collects what a page asks of others, and its text; raises where tags do not match."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" not in self.open and "style" not in self.open:
            self.text += data


def page_of(results: Results) -> _Page:
    page = _Page()
    page.feed(write_report(results, CHECKOUT).read_text())
    assert not page.open
    return page


def results_of(
    folder: Path, rates: list[float], failure: Failure | None = None, sizes: tuple[int, ...] = (1, 2)
) -> Results:
    return results_in(folder, campaign(Commands(), sizes, max(1, len(rates))), rates, failure)


def test_a_report_stands_alone_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    results = results_of(tmp_path, THREE)
    write_index(tmp_path, [Entry(Path("demo/quick"), results)])
    page = page_of(results)
    assert page.references
    for reference in page.references:
        assert not re.match(r"\w+:|//", reference), f"{reference} needs a network"
        assert (results.folder / reference).exists()


def test_a_report_begins_with_question_answer_and_whether_it_may_be_quoted(tmp_path: Path) -> None:
    text = page_of(results_of(tmp_path, THREE)).text
    first = text[: text.index("Every value")]
    for words in (
        "Is it so?",
        "It is so at 2 points.",
        "quotable: every interval within 10%",
        "100/s to 102/s",
        "Rates",
    ):
        assert words in first
    positions = [text.index(words) for words in ("Is it so?", "It is so at", "quotable:", "a size", "Method")]
    assert positions == sorted(positions)


def test_a_report_says_what_was_measured_how_and_where(tmp_path: Path) -> None:
    page = page_of(results_of(tmp_path, THREE))
    for words in ("1 in size", "a processor", "0123456789ab", "harness run demo", "sizes above two", "echo <1> & done",
                  "durability", "cores idle for 40%", "processor of processes"):  # fmt: skip
        assert words in page.text


def test_few_repetitions_and_wide_intervals_are_not_quotable(tmp_path: Path) -> None:
    assert verdict_of(results_of(tmp_path / "wide", [100.0, 200.0, 300.0])) == (
        "not quotable: each of 2 points with an interval over 10%",
        "warn",
    )
    assert verdict_of(results_of(tmp_path / "twice", [100.0, 100.0]))[0] == (
        "not quotable: each of 2 points measured fewer than 3 times"
    )
    once = results_of(tmp_path / "once", [100.0])
    assert verdict_of(once)[0] == "not quotable: each of 2 points measured once"
    assert "measured once" in page_of(once).text


def test_missing_runs_are_said(tmp_path: Path) -> None:
    results = results_of(tmp_path, [])
    assert verdict_of(results) == ("not quotable: 2 of 2 not measured yet", "warn")
    assert "repetition 1: not measured yet" in page_of(results).text


def test_failures_are_shown_with_their_log(tmp_path: Path) -> None:
    failure = Failure("size-1", "ended with exit code 3", ("0.1\tit <broke>",), ({"size": 1},))
    results = results_of(tmp_path, THREE, failure)
    assert verdict_of(results) == ("1 of 2 points quotable: 1 of 2 points failed", "bad")
    assert "it <broke>" in page_of(results).text
    assert "failed in 3 runs" in page_of(results).text


def test_a_doubt_counts_where_half_of_the_repetitions_have_it(tmp_path: Path) -> None:
    results = results_of(tmp_path, [*THREE, 100.0], sizes=(1,))
    assert verdict_of(results)[1] == "good"
    for mark, word in (("not flat within 60 s", "not flat"), ("disturbed: processes of others computed", "disturbed")):
        for marked, said in ((1, []), (2, [f"{word} (2 of 4)"]), (4, [word])):
            outcomes = {
                run_id: replace(of, rows=tuple(replace(row, marks=(mark,)) for row in of.rows)) if rank < marked else of
                for rank, (run_id, of) in enumerate(results.outcomes.items())
            }
            changed = replace(results, outcomes=outcomes)
            (point,) = changed.points()
            assert reasons(point, Commands.metrics) == said
            assert verdict_of(changed)[1] == ("warn" if said else "good")


def test_the_index_has_each_answer(tmp_path: Path) -> None:
    results = results_of(tmp_path, THREE)
    write_report(results, CHECKOUT)
    elsewhere = Entry(Path("other-machine/demo/quick"), results)
    text = write_index(tmp_path, [Entry(Path("demo/quick"), results), elsewhere]).read_text()
    for words in ("Is it so?", "It is so at 2 points.", "quotable: every interval within 10%", ">demo, other-machine<"):
        assert words in text
    assert 'href="demo/quick/report.html"' in text
    assert 'href="other-machine/demo/quick/report.html"' in text


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


@pytest.mark.parametrize(
    ("value", "short", "long"),
    [(0, "0", "0"), (0.5, "0.5", "0.5"), (64, "64", "64.0"), (1024, "1024", "1,024"), (20_000, "20K", "20,000"),
     (370_000, "370K", "370,000"), (1.5e6, "1.5M", "1,500,000"), (2e9, "2G", "2,000,000,000")],
)  # fmt: skip
def test_numbers_are_short(value: float, short: str, long: str) -> None:
    assert compact(value) == short
    assert number(value) == long


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(65_441.0, "1/s", "65.4 K/s"), (945.0, "1/s", "945/s"), (1.75e6, "1/s", "1.75 M/s"), (1_770.0, "µs", "1.77 ms"),
     (77_823.0, "µs", "77.8 ms"), (0.9463, "1", "0.95"), (13.02, "s", "13.0 s"), (5.2e6, "B", "5.20 MB"),
     (512.0, "B", "512 B"), (48.0, "", "48.0"), (3_000_000.0, "", "3.00 M")],
)  # fmt: skip
def test_quantities_are_in_a_readers_units(value: float, unit: str, said: str) -> None:
    assert quantity(value, unit) == said


def test_an_interval_names_its_unit_once() -> None:
    assert interval(summarize([60_000.0, 61_000.0, 62_000.0]), "1/s") == "60.0 to 62.0 K/s"
    assert interval(summarize([900.0, 950.0, 1_100.0]), "1/s") == "900/s to 1.10 K/s"
    assert interval(summarize([0.9, 0.95, 0.97]), "1") == "0.90 to 0.97"
    assert interval(summarize([5.0]), "1/s") == "measured once"
