"""Sizings from what was published, and what they are worth."""

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from sizings import CHECKOUT, EMBEDDED, asked, node, one

from harness.__main__ import main
from harness.errors import HarnessError
from harness.scaling import MOST_ERROR
from harness.sizing import evidence, facts, findings, forms
from harness.sizing.evidence import Observation
from harness.sizing.model import Model, build
from harness.sizing.solve import Answer, size
from harness.sizing.ways import WAYS


def test_more_load_never_takes_fewer_nodes(published: Model) -> None:
    before: Mapping[tuple[str, str], Answer] = {}
    for load in (100.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0):
        operations = {"reads": load, "inserts": load / 3, "updates": load / 5}
        answers = size(published, asked(operations=operations, replication=3, levels=["ONE", "QUORUM"])).answers
        found = {(of.way.name, of.level): of for of in answers if of.refused is None}
        assert found
        for key, of in found.items():
            assert of.least <= of.nodes <= of.most
            assert of.more_nodes >= 0
            if key in before:
                earlier = before[key]
                assert (of.least, of.nodes, of.most) >= (earlier.least, earlier.nodes, earlier.most)
                assert of.least >= earlier.least
                assert of.most >= earlier.most
        before = found


def test_a_further_replica_a_stricter_level_and_headroom_never_take_fewer_nodes(published: Model) -> None:
    operations = {"reads": 40_000.0, "inserts": 9_000.0}
    plain = asked(operations=operations, replication=2)
    nodes = one(published, plain).nodes
    assert one(published, plain.model_copy(update={"replication": 3})).nodes >= nodes
    assert one(published, plain.model_copy(update={"levels": ["ALL"]}), level="ALL").nodes >= nodes
    assert one(published, plain.model_copy(update={"headroom": 0.3})).nodes > nodes


@pytest.fixture(scope="module")
def found() -> list[Observation]:
    """Everything that was published."""
    return evidence.read(CHECKOUT / "results", CHECKOUT / "campaigns", CHECKOUT / "docs")


@pytest.fixture(scope="module")
def published(found: list[Observation]) -> Model:
    return build(found)


def trial(model: Model, source: str, what: str) -> findings.Trial:
    return next(of for of in findings.trials(model.held_out) if (of.source, of.what) == (source, what))


def test_what_published_nodes_did_is_predicted_from_their_others(published: Model) -> None:
    """The bar: `grow` within 20 %, each number of nodes from the others, and all of them from another campaign."""
    for what, points in (
        ("several nodes, from its others", 3),
        ("several nodes, from other campaigns", 3),
        ("reads/s of nodes, by their disks", 4),
    ):
        found = trial(published, "grow", what)
        assert found.points == points
        assert found.holds
        assert found.words == "within 20%"


def test_what_published_threads_did_is_predicted_or_said_to_be_unknown(published: Model) -> None:
    """The bar: `threads` within 20 %, or the answer says that nobody can say."""
    reads = trial(published, "ycsb/threads", "reads, aiodb, values on SSD")
    inserts = trial(published, "ycsb/threads", "inserts, aiodb, values on SSD")
    for found in (reads, inserts):
        assert found.points == 5
        assert found.words == ("within 20%" if found.most <= MOST_ERROR else "cannot be said within 20%")
    assert reads.holds


def test_published_grow_is_sized_without_the_number_of_nodes_that_is_asked_for(found: list[Observation]) -> None:
    """The bar once more, as a user would ask: nodes for what four did, from what fewer did and other campaigns."""
    grow = [of for of in found if of.source == "grow"]
    most = max(grow, key=lambda of: of.nodes)
    limit = most.limits["node_reads_per_s"]
    rest = build([of for of in found if of is not most])
    requirement = asked(operations={"reads": most.per_s}, node=node(disk_reads_per_s=limit))
    nodes = one(rest, requirement).by_resource["reads"]
    assert abs(nodes / most.nodes - 1) <= MOST_ERROR


def test_published_threads_are_sized_without_the_point_that_is_asked_for_or_said_to_be_unknown(
    found: list[Observation],
) -> None:
    points = [of for of in found if of.source == "ycsb/threads" and of.kind == "inserts"]
    assert len(points) > 3
    for left in points:
        rest = build([of for of in found if of is not left])
        late = left.p99_us["inserts"] / 1000
        requirement = asked(
            system="embedded", durability="sync", operations={"inserts": left.per_s}, p99_ms={"inserts": late}
        )
        row = one(rest, requirement, EMBEDDED)
        off = abs(row.by_resource["processor"] - 1) if row.refused is None else math.inf
        known = any("and not within 20%" in of for of in row.guesses) or row.refused is not None
        assert off <= MOST_ERROR or known, f"{left.clients:g} clients: off by {off:.0%}, and nothing says so"


def test_every_campaign_that_is_used_shows_how_far_off_it_was(published: Model) -> None:
    requirement = asked(operations={"reads": 100.0, "inserts": 10.0}, replication=3)
    found = size(published, requirement)
    shown = {of.source for of in found.held_out}
    used = {it.source for row in found.answers for of in row.curves.values() for it in of}
    assert {"load", "cassandra-in-memory", "cassandra-limited"} <= used <= shown
    assert not found.untried
    assert {"grow", "clients-disk", "consistency", "ycsb/cassandra"} <= shown


def test_published_sizings_are_answered_or_refused_with_a_reason(published: Model) -> None:
    for system in ("cassandra", "embedded"):
        for durability in ("sync", "interval"):
            requirement = asked(
                system=system,
                durability=durability,
                operations={"reads": 1e4, "inserts": 1e3, "updates": 1e3, "scans": 10.0},
                node=node(disk_writes_per_s=1e4),
            )
            rows = size(published, requirement).answers
            assert len(rows) == sum(1 for way in WAYS if way.system == system)
            assert any(of.refused is None for of in rows)
            for row in rows:
                assert (row.refused is None) == (row.nodes > 0)
                assert row.grade in ("measured", "guess", "refused")


def test_text_and_data_say_the_same(published: Model) -> None:
    requirement = asked(operations={"reads": 10_000.0}, replication=3, levels=["ONE", "ALL"], lost_nodes=1)
    found = size(published, requirement)
    said, data = forms.text(found), json.loads(forms.json_text(found))
    assert len(data["answers"]) == len(found.answers)
    for row, of in zip(data["answers"], found.answers, strict=True):
        assert row["grade"] == of.grade
        if of.refused is None:
            assert row["nodes"] == {"middle": of.nodes, "least": of.least, "most": of.most}
            assert f"{of.nodes:,} ({of.least:,}-{of.most:,})" in said
        else:
            assert row["reason"] == of.refused
            assert of.refused in said
    for cheapest in data["cheapest"]:
        assert cheapest in said


def test_a_page_has_the_answer_open_and_the_rest_folded(published: Model) -> None:
    found = size(published, asked(title="<b>Ours</b>", operations={"reads": 10_000.0}, replication=3))
    said = forms.page(found)
    assert "<h1>&lt;b&gt;Ours&lt;/b&gt;</h1>" in said
    start, _, folded = said.partition("<details>")
    assert findings.cheapest(found)[0].replace("'", "&#x27;") in start
    for row in found.answers:
        assert row.way.name.replace("'", "&#x27;") in start
    assert "How far off predictions were" in folded
    assert "http" not in said, "one file without any other"


def test_how_often_bands_held_is_counted(published: Model) -> None:
    inside = [of.in_band for of in published.held_out if of.in_band is not None]
    (said,) = findings.coverage(published.held_out)
    assert said == f"{sum(inside)} of {len(inside)} rates lay within the 80 % band that the other campaigns give"
    assert sum(inside) >= 0.6 * len(inside), "a band of 80 % that holds in fewer cases than these is none"
    assert findings.coverage([]) == []


def test_more_of_one_kind_never_takes_fewer_nodes(published: Model) -> None:
    before = 0
    for reads in (0.0, 10.0, 1_000.0, 5_000.0, 20_000.0, 40_000.0, 80_000.0):
        operations = {"reads": reads, "updates": 9_000.0, "inserts": 3_000.0}
        nodes = one(published, asked(operations=operations, replication=3)).nodes
        assert nodes >= before
        before = nodes


def test_the_facts_are_those_of_the_documents() -> None:
    def prose(name: str) -> str:
        return " ".join((CHECKOUT / "docs" / name).read_text().split())

    operations = prose("operations.md")
    assert f"about {facts.INDEX_BYTES_PER_KEY.value:.0f} bytes a key" in operations
    assert f"keys of {facts.INDEX_KEY_BYTES} bytes" in operations
    assert f"a record takes {facts.RECORD_HEADER_BYTES.value:.0f} bytes beside key and value" in operations
    assert f"rounded up to {facts.RECORD_ROUNDING}" in operations
    assert f"a value from {facts.OWN_SECTORS_FROM:,} bytes on takes whole sectors" in operations
    assert f"plan for {facts.AIODB_SPACE.value} times the live bytes" in operations
    cassandra = prose("cassandra.md")
    assert f"{facts.CASSANDRA_MEMORY_GB.value * 1000:,.0f} MB" in cassandra
    assert f"the disk reads {facts.READ_AHEAD_BYTES // 1024} KB ahead" in cassandra


def test_published_evidence_is_read_with_what_it_was_measured_on(found: list[Observation]) -> None:
    sources = {of.source for of in found}
    assert {"load", "ycsb/threads", "grow", "queue-depth", "cassandra-in-memory", "cassandra-limited"} <= sources
    assert all(of.cores > 0 and of.per_s > 0 for of in found)
    assert "cost" not in sources, "prices are no rates"


def test_no_results_and_a_campaign_that_is_gone_are_said(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="has no published results"):
        evidence.read(tmp_path, CHECKOUT / "campaigns", CHECKOUT / "docs")
    gone = tmp_path / "gone" / "quick"
    gone.mkdir(parents=True)
    (gone / "summary.json").write_text("{}")
    with pytest.raises(HarnessError, match="was published of a campaign that"):
        evidence.read(tmp_path, CHECKOUT / "campaigns", CHECKOUT / "docs")


def test_a_bench_without_rounds_is_named(tmp_path: Path) -> None:
    shutil.copy(CHECKOUT / "docs" / "benches.toml", tmp_path)
    (tmp_path / "cassandra-mix.json").write_text('{"workload": "mix"}\n')
    with pytest.raises(HarnessError, match=r"cassandra-mix.json has no rounds of a bench"):
        list(evidence.of_benches(tmp_path))


def test_the_command_writes_all_forms_and_names_a_wrong_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = CHECKOUT / "requirements" / "sessions.toml"
    page = tmp_path / "page.html"
    monkeypatch.setattr("sys.argv", ["harness", "size", str(good), "--json", "--html", str(page)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["answers"]
    assert page.read_text().startswith("<!doctype html>")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(good.read_text().replace("headroom = 0.3", "headroom = 3"))
    monkeypatch.setattr("sys.argv", ["harness", "size", str(wrong)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"{wrong}:5: `headroom`: 3 is out of bounds: at most 0.95" in capsys.readouterr().err
