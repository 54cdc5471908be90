"""Figures of documents: those that have drifted, that name what no result has, or that say nothing of their origin."""

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from harness import planfile
from harness.benches import read_bench, read_benches
from harness.documents import check, tables
from harness.documents.marks import Sources, corrected, marks, value_of
from harness.documents.marks import rewritten as with_marks
from harness.documents.pictures import pictures
from harness.errors import HarnessError, PlanError
from harness.plan import Campaign

CHECKOUT = Path(__file__).parents[2]


def campaign_of(name: str) -> Campaign:
    return planfile.read(CHECKOUT / "campaigns" / f"{name}.toml")


@cache
def sources() -> Sources:
    return Sources(CHECKOUT, campaign_of)


@pytest.mark.parametrize("document", check.DOCUMENTS)
def test_documents_say_what_is_published(document: str) -> None:
    assert not check.drifted(document, sources()), "`make figures` writes them anew"


@pytest.mark.parametrize("document", check.DOCUMENTS)
def test_every_figure_of_performance_says_where_it_is_from(document: str) -> None:
    found = list(check.unmarked((CHECKOUT / document).read_text(encoding="utf-8")))
    assert not found, f"{document}: " + "\n".join(found)


def test_pictures_are_drawn_from_what_is_published() -> None:
    drawn = list(pictures(sources()))
    assert drawn
    for path, text in drawn:
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: `make figures` draws it anew"


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("results/**/*.md")]
    assert len(documents) > 10
    dead = [
        f"{document.relative_to(CHECKOUT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8"))
        if "://" not in target and not (document.parent / target).exists()
    ]
    assert not dead


def test_the_documents_have_figures() -> None:
    texts = {name: (CHECKOUT / name).read_text(encoding="utf-8") for name in check.DOCUMENTS}
    assert len(list(marks(texts["README.md"]))) >= 10
    assert len(list(marks(texts["docs/cassandra.md"]))) >= 20
    assert sum(len(tables.BLOCK.findall(text)) for text in texts.values()) >= 10


@pytest.mark.parametrize(
    ("printed", "mark", "said"),
    [
        ("1.3 (1.1 to 1.3)", "cassandra-limited.json workload=get per_second by=best", "1.3 (1.1 to 1.4)"),
        ("1", "cassandra-limited.json workload=get line=aiodb per_second", "14,500"),
        ("0.1", "queue-depth depth=64 ratio", "0.9"),
        ("500", "clients-disk nodes=1 threads=300 engine=stock operations_per_s", "703"),
        ("0.5", "clients-disk nodes=1 threads=300 engine=stock operations_per_s /1000", "0.7"),
    ],
)
def test_a_number_that_has_drifted_is_corrected(printed: str, mark: str, said: str) -> None:
    assert corrected(printed, mark, sources()) == said
    assert with_marks(f"so {printed}<!-- {mark} --> it is", sources()) == f"so {said}<!-- {mark} --> it is"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("queue-depths depth=64 ratio", "nothing is published of 'queue-depths'"),
        ("queue-depth depth=65 ratio", "has 0 points"),
        ("clients-disk operations_per_s", "a mark must leave one"),
        ("queue-depth depth=64 ratios", "has no ratios"),
        ("queue-depth depth=64", "names no single value"),
        ("cassandra-nothing.json workload=get per_second", "no bench has left"),
        ("cassandra-limited.json workload=put per_second", "has no per_second of aiodb for put"),
        ("cassandra-limited.json workload=get seconds", "a bench has no seconds"),
        ("cassandra-mix.json workload=mix per_second by=best", "nothing is beside aiodb"),
        ("points twice", "counts nothing"),
    ],
)
def test_a_mark_that_names_what_no_result_has_is_refused(mark: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        value_of(mark, sources())


@pytest.mark.parametrize(
    ("words", "said"),
    [("rate x.json", "there is no table 'rate'"), ("answers unknown", "nothing is published of 'unknown'")],
)
def test_a_table_that_names_what_no_result_has_is_refused(words: str, said: str) -> None:
    with pytest.raises(HarnessError, match=said):
        tables.table(words, sources(), CHECKOUT)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('commit = "0cebf60"\n', "", r"benches\.toml:34: `files\.cassandra-limited\.json\.commit`: field required"),
        ("cores = 2", 'cores = "2"', r"benches\.toml:10: `node\.cores`: input should be a valid integer"),
        ("memory_part", "memory", r"benches\.toml:36: `files\.cassandra-limited\.json\.memory`: extra inputs"),
        ("machine = ", "machine ", r"benches\.toml:4: not TOML"),
    ],
)
def test_what_is_wrong_with_what_is_said_of_benches_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (CHECKOUT / "docs" / "benches.toml").read_text()
    assert old in text
    (tmp_path / "benches.toml").write_text(text.replace(old, new))
    with pytest.raises(PlanError, match=said):
        read_benches(tmp_path)


def test_every_bench_is_known_with_all_that_it_measured() -> None:
    benches = sources().benches
    assert {path.name for path in (CHECKOUT / "docs").glob("*.json")} == set(benches.files)
    for name, about in benches.files.items():
        for workload in sources().bench(name).workloads():
            assert benches.workload(workload).title
        assert (CHECKOUT / next(of for of in about.command.split() if of.startswith("scripts/"))).exists()
    for unknown in (benches.about, benches.workload):
        with pytest.raises(HarnessError, match=r"docs/benches\.toml has no \w+ 'nothing'"):
            unknown("nothing")


def test_a_table_that_has_drifted_is_found_with_its_line(tmp_path: Path) -> None:
    for name in ("docs", "results", "campaigns"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    document = tmp_path / "docs" / "cassandra.md"
    document.write_text(document.read_text().replace("| 14,500 (14,200-15,300) |", "| 15,500 (14,200-15,300) |"))
    changed = Sources(tmp_path, campaign_of)
    (found,) = check.drifted("docs/cassandra.md", changed)
    assert found.startswith("docs/cassandra.md:")
    assert "-> | aiodb | 14,500 (14,200-15,300) |" in found


def test_a_result_that_has_changed_makes_its_documents_drift(tmp_path: Path) -> None:
    for name in ("docs", "results", "campaigns"):
        shutil.copytree(CHECKOUT / name, tmp_path / name)
    bench = tmp_path / "docs" / "cassandra-limited.json"
    rows = [json.loads(line) for line in bench.read_text().splitlines()]
    faster = [{**row, "per_second": row["per_second"] * (2 if row["line"] == "aiodb" else 1)} for row in rows]
    bench.write_text("\n".join(map(json.dumps, faster)))
    assert len(check.drifted("docs/cassandra.md", Sources(tmp_path, campaign_of))) >= 2


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("it does 1,234 gets/s", ["1,234 gets/s"]),
        ("p99 is 17 ms, and 5 µs", ["17 ms", "5 µs"]),
        ("14,500 gets a second and 12K/s", ["14,500 gets a second", "12K/s"]),
        ("0.95 of the device", ["0.95"]),
        ("0.95<!-- queue-depth depth=64 ratio --> of the device", []),
        ("1.3 (1.1 to 1.4)<!-- x.json by=best -->, 375<!-- theirs --> thousand gets/s", []),
        ("at 8,900<!-- setting --> gets a second", []),
        ("`--per-second=8900` gives 5 reads/s", ["5 reads/s"]),
        ("<!-- table lines x -->\n| 0.95 |\n<!-- end -->", []),
        ("```\n12 ms\n```", []),
        ("after 10 s, in 4 KiB, of 2 cores, version 5.0.9", []),
        ("version 5.11.1, or 3.0.17, and a ratio of 1.31.", ["1.31"]),
    ],
)
def test_figures_that_say_nothing_of_where_they_are_from_are_found(text: str, found: list[str]) -> None:
    assert [said.partition(": ")[2].partition(" in `")[0] for said in check.unmarked(text)] == found


def test_a_line_of_a_bench_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    path.write_text('{"line": "aiodb"}\n{"line"\n')
    with pytest.raises(HarnessError, match=r"bench\.json:2"):
        read_bench(path)


def test_quotients_are_medians_of_those_within_the_rounds(tmp_path: Path) -> None:
    path = tmp_path / "bench.json"
    rates = {
        "aiodb": (10.0, 20.0, 30.0),
        "default": (20.0, 10.0, 30.0),
        "tuned": (10.0, 40.0, 10.0),
        "null": (99.0,) * 3,
    }
    rows = [
        {"workload": "get", "line": line, "round": number, "per_second": rate, "cpu_us": 100 / rate}
        for line, of in rates.items()
        for number, rate in enumerate(of, 1)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    bench = read_bench(path)
    best = bench.by_best("get", "per_second")
    assert (best.median, best.low, best.high) == (0.5, 0.5, 1.0)
    assert bench.by_best("get", "cpu_us").median == 2.0, "of the processor the least is the best"
