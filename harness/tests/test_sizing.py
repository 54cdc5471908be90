"""Sizings: from made-up measurements, whose answer can be worked out, and from published ones."""

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import HarnessError
from harness.scaling import MOST_ERROR, Law
from harness.sizing import evidence, facts, findings, forms, solve
from harness.sizing.curves import curves
from harness.sizing.evidence import Observation
from harness.sizing.model import Model, build, growth_points
from harness.sizing.requirement import Requirement
from harness.sizing.solve import Answer, size
from harness.sizing.ways import WAYS, Way

CHECKOUT = Path(__file__).parents[2]
AIODB = Way("cassandra", "aiodb", "values on SSD")
OWN = Way("cassandra", "Cassandra's own", "all in memory")
EMBEDDED = Way("embedded", "aiodb", "values on SSD")
LAW = Law(0.001, 0.0002, 0.000001)
COUNTS = (1, 2, 4, 8, 16, 32, 64)
# The most that the law gives, with 32 clients.
MOST = max(LAW.per_s(of) for of in COUNTS)


def observation(**changes: Any) -> Observation:
    """A point of one node of aiodb under Cassandra."""
    plain = Observation(
        source="load", way=AIODB, mix={"reads": 1.0}, nodes=1, replication=1, level="ONE", clients=64.0,
        values=(1000.0,), p99_us={"reads": 5000.0}, mean_us={}, cores=2, record_bytes=1000.0, rows=1e6,
        memory_part=25.0, scan_rows=50.0,
        durability="interval", limits={}, marks=(),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def swept(kind: str = "reads", **changes: Any) -> list[Observation]:
    """One node under each count of clients, by the law, and later the more there are."""
    return [
        observation(mix={kind: 1.0}, clients=float(of), values=(LAW.per_s(of),), p99_us={kind: 1000.0 * of}, **changes)
        for of in COUNTS
    ]


def asked(**changes: Any) -> Requirement:
    """A requirement near what was measured, with the changes."""
    values: dict[str, Any] = {
        "operations": {"reads": 1000.0},
        "headroom": 0.0,
        "data": {"rows": 1e6, "record_bytes": 1000, "key_bytes": 18},
        "node": {"same": {"cores": 2, "memory_gb": 1000.0, "disk_gb": 1000.0, "disk_reads_per_s": 1e6, "usd": 100.0}},
    }
    return Requirement.model_validate({**values, **changes})


def node(**changes: Any) -> dict[str, Any]:
    plain = {"cores": 2, "memory_gb": 1000.0, "disk_gb": 1000.0, "disk_reads_per_s": 1e6, "usd": 100.0}
    return {"same": {**plain, **changes}}


def one(model: Model, requirement: Requirement, way: Way = AIODB, level: str = "ONE") -> Answer:
    return solve.answer(model, requirement, next(iter(requirement.node)), way, level)


def test_what_was_measured_exactly_is_answered_exactly() -> None:
    model = build(swept())
    found = one(model, asked(operations={"reads": MOST * 0.99}))
    assert (found.least, found.nodes, found.most, found.usd) == (1, 1, 1, 100.0)
    assert (found.grade, found.binds) == ("measured", "processor")
    assert found.by_resource["processor"] == pytest.approx(0.99)
    assert (found.more_nodes, found.more_chance) == (1, 1.0), "a tenth more is too much for one node"
    assert found.more_usd == 100.0
    assert one(model, asked(operations={"reads": MOST * 0.99}, headroom=0.5)).nodes > 1


def test_a_latency_lets_only_fewer_clients_in() -> None:
    model = build(swept())
    found = one(model, asked(operations={"reads": LAW.per_s(8)}, p99_ms={"reads": 8.5}))
    assert found.by_resource["processor"] == pytest.approx(1.0)
    (late,) = found.late
    assert late.closed_ms == pytest.approx(8.0)
    refused = one(model, asked(p99_ms={"reads": 0.5}))
    assert refused.refused == "no number of clients had reads within 0.5 ms: the least was 1 ms"
    assert refused.grade == "refused"


def test_a_way_without_a_measurement_is_refused_by_name() -> None:
    model = build(swept())
    assert one(model, asked(), OWN).refused == "no campaign measured reads of Cassandra's own, all in memory"
    found = one(model, asked(operations={"reads": 10.0, "scans": 1.0}))
    assert found.refused == "no campaign measured scans of aiodb, values on SSD"


def test_kinds_that_take_a_node_each_take_two_together() -> None:
    model = build([*swept(), *swept("inserts")])
    alone = one(model, asked(operations={"reads": MOST}))
    both = one(model, asked(operations={"reads": MOST, "inserts": MOST}))
    assert alone.by_resource["processor"] == pytest.approx(1.0)
    assert both.by_resource["processor"] > 2, "nobody measured several nodes, so two do less than twice as much"
    assert "no mix was measured: operations are taken to add up" in both.guesses


def test_a_mix_costs_what_mixes_were_seen_to_cost() -> None:
    half = LAW.per_s(32) / 2
    mixed = observation(source="ycsb", mix={"reads": 0.5, "updates": 0.5}, values=(half,), clients=32.0, p99_us={})
    model = build([*swept(), *swept("inserts"), *swept("updates"), mixed])
    assert model.mixing.log_factor == pytest.approx(math.log(2.0)), "updates by themselves do as much as reads"
    found = one(model, asked(operations={"reads": MOST / 8, "updates": MOST / 8}))
    assert found.by_resource["processor"] == pytest.approx(0.5, rel=0.01), "a quarter, and twice of it for the mix"
    alone = one(model, asked(operations={"reads": MOST / 4}))
    assert alone.by_resource["processor"] == pytest.approx(0.25)


def test_each_resource_can_bind() -> None:
    model = build([*swept(), *swept("inserts")])
    few = {"reads": 10.0, "inserts": 10.0}
    assert one(model, asked(operations=few, node=node(disk_reads_per_s=1.0))).binds == "reads"
    assert one(model, asked(operations=few, data={"rows": 1e9, "record_bytes": 1000})).binds == "disk space"
    index = {"rows": 1e9, "record_bytes": 1000}
    assert one(model, asked(operations=few, data=index, node=node(memory_gb=8.0, disk_gb=1e5))).binds == "memory"
    network = node(network_gbit_per_s=0.00001)
    assert one(model, asked(operations=few, node=network)).binds == "network"
    assert one(model, asked(operations=few, replication=3)).binds == "replicas"


def test_disk_space_is_counted_by_hand() -> None:
    model = build(swept())
    found = one(model, asked(data={"rows": 1e9, "record_bytes": 1000, "key_bytes": 18}))
    # 24 bytes of header, rounded up to 16; half as much again until reclaim; the index.
    stored = 1024 * 1.5 + 110
    assert found.by_resource["disk space"] == pytest.approx(stored * 1e9 / 1000e9)
    large = one(model, asked(data={"rows": 1e9, "record_bytes": 2018, "key_bytes": 18}))
    sectors = (2048 + 64) * 1.5 + 110
    assert large.by_resource["disk space"] == pytest.approx(sectors * 1e9 / 1000e9), "a value on sectors of its own"


def test_long_keys_take_more_of_the_index_and_are_a_guess() -> None:
    model = build(swept())
    roomy = node(disk_gb=1e9, memory_gb=101.393)
    found = one(model, asked(data={"rows": 1e10, "record_bytes": 1000, "key_bytes": 118}, node=roomy))
    assert found.by_resource["memory"] == pytest.approx((110 + 150) * 1e10 / 100e9, rel=0.02), (
        "a byte and a half for each of 100"
    )
    assert "the index was measured with keys of 18 bytes, not 118" in found.guesses


def test_memory_holds_the_index_or_all_data() -> None:
    model = build([*swept(), *swept(way=OWN)])
    data = {"rows": 1e10, "record_bytes": 1000, "key_bytes": 18}
    requirement = asked(data=data, node=node(disk_gb=1e9, memory_gb=101.393))
    assert one(model, requirement).by_resource["memory"] == pytest.approx(110 * 1e10 / 100e9)
    assert one(model, requirement, OWN).by_resource["memory"] == pytest.approx(1064 * 1e10 / 100e9)
    tiny = one(model, asked(node=node(memory_gb=1.0)))
    assert tiny.refused == "no number of such nodes is enough: memory is used up by Cassandra itself"


def test_a_node_holds_no_row_twice() -> None:
    model = build(swept())
    full = {"rows": 1e9, "record_bytes": 1000}
    found = one(model, asked(replication=3, lost_nodes=1, data=full, node=node(disk_gb=1700.0)))
    assert found.by_resource["disk space"] == 1.0, "three replicas of what fits into one node fit into any number"
    assert found.nodes == 3


def test_lost_nodes_come_on_top_and_may_be_too_many_for_a_level() -> None:
    model = build(swept())
    requirement = asked(operations={"reads": MOST * 4}, replication=3, levels=["ONE", "QUORUM", "ALL"])
    lost = requirement.model_copy(update={"lost_nodes": 1})
    assert one(model, lost).nodes == one(model, requirement).nodes + 1
    assert one(model, lost, level="ALL").refused == "ALL needs 3 of 3 replicas: 2 are left once 1 are lost"
    two = requirement.model_copy(update={"lost_nodes": 2})
    assert one(model, two, level="QUORUM").refused is not None
    assert one(model, two, level="ONE").refused is None


def test_what_is_another_than_measured_is_a_guess_that_says_why() -> None:
    model = build([*swept(), *swept("inserts")])
    assert one(model, asked()).guesses == ()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"node": node(cores=16)}, "measured on 2 cores, not 16"),
        ({"data": {"rows": 1e6, "record_bytes": 9000}}, "reads were measured with records of 1,000 bytes, not 9,000"),
        (
            {"data": {"rows": 1e9, "record_bytes": 1000}, "node": node(disk_gb=1e6)},
            "reads were measured on 1,000,000 rows, not 1,000,000,000",
        ),
        (
            {"operations": {"inserts": 900.0}, "durability": "sync"},
            "inserts were measured with durability interval only",
        ),
        ({"operations": {"reads": 1e6}}, "no campaign measured several nodes"),
        ({"replication": 3}, "no campaign measured replicas"),
    ]
    for changes, reason in cases:
        found = one(
            build([*swept(), *swept("inserts"), _commits()]),
            asked(**{**changes, "node": changes.get("node", node(disk_writes_per_s=1e9))}),
        )
        assert reason in found.guesses, f"{reason}: {found}"
        assert found.grade == "guess"
    assert model.growth_known is False


def _commits() -> Observation:
    limits = {"node_writes_per_s": 100.0}
    return observation(source="clients-disk", mix={"inserts": 1.0}, durability="sync", limits=limits, values=(500.0,))


def test_writes_that_wait_for_the_disk_are_bound_by_it() -> None:
    model = build([*swept(), *swept("inserts"), _commits()])
    requirement = asked(operations={"inserts": 50.0}, durability="sync", node=node(disk_writes_per_s=2.0))
    found = one(model, requirement)
    # Five inserts in each of two writes.
    assert found.by_resource["writes"] == pytest.approx(model.growth.nodes(np.array([5.0]), *_MIDDLE)[0], rel=0.05)
    assert one(model, asked(operations={"inserts": 50.0}, durability="sync")).refused == (
        "durability sync needs the node's disk_writes_per_s"
    )


_MIDDLE = (np.zeros(1), np.zeros(1))


def test_nodes_add_up_as_they_were_seen_to() -> None:
    limits = {"node_reads_per_s": 500.0}
    grown = [
        observation(source="grow", nodes=of, values=(500.0 * of**0.8,), limits=limits, clients=48.0)
        for of in (1, 2, 3, 4)
    ]
    model = build([*swept(), *grown])
    assert model.growth.exponent == pytest.approx(0.8)
    times = MOST * 4**0.8 * 0.999
    assert one(model, asked(operations={"reads": times})).nodes == 4
    shared = [dataclasses.replace(of, marks=("shared CPU: shape only",)) for of in grown]
    assert growth_points(shared) == [], "nodes on one processor say nothing of that"


def test_a_rate_of_their_own_shows_what_waiting_clients_hide() -> None:
    own = observation(source="at-a-rate", clients=0.0, values=(MOST / 2,), p99_us={"reads": 90_000.0})
    model = build([*swept(), own])
    busy = one(model, asked(operations={"reads": MOST * 0.6}, p99_ms={"reads": 70.0}))
    assert findings.late_text(busy.late) == "90*!"
    assert any("more than 70" in of for of in busy.guesses)
    idle = one(model, asked(operations={"reads": MOST * 0.1}, p99_ms={"reads": 70.0}))
    assert not idle.late[0].is_over
    assert any("measured with waiting clients alone" in of for of in idle.guesses)


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
    reads = trial(published, "threads", "reads, aiodb, values on SSD")
    inserts = trial(published, "threads", "inserts, aiodb, values on SSD")
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
    points = [of for of in found if of.source == "threads" and of.kind == "inserts"]
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
    for row in found.answers:
        assert {it.source for of in row.curves.values() for it in of} <= shown | set(found.untried)
    assert "cassandra-in-memory" not in found.untried
    assert {"grow", "clients-disk", "consistency", "ycsb-cassandra"} <= shown


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


def test_a_guess_that_changes_no_answer_is_not_named() -> None:
    model = build([*swept(), *swept("inserts")])
    far = asked(operations={"reads": 100.0}, data={"rows": 1e10, "record_bytes": 1000})
    assert one(model, far).binds == "disk space"
    assert one(model, far).guesses == (), "how much a node reads does not matter, however unsure that is"
    small = asked(operations={"reads": MOST, "inserts": 1.0}, durability="sync", node=node(disk_writes_per_s=1e9))
    found = one(build([*swept(), *swept("inserts"), _commits()]), small)
    assert not any("durability" in of for of in found.guesses)


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


def test_the_cheapest_is_sure_only_where_bands_lie_apart() -> None:
    exact = build([*swept(), *swept(way=OWN, source="other")])
    dear = asked(data={"rows": 1e9, "record_bytes": 1000}, node=node(memory_gb=200.0, disk_gb=1e5))
    (sure,) = findings.cheapest(size(exact, dear))
    assert sure == "ONE: the cheapest is 1 nodes of same, aiodb, values on SSD, 100 USD: its band lies below all others"
    (unsure,) = findings.cheapest(size(exact, asked()))
    assert "may be cheaper" in unsure
    (none,) = findings.cheapest(size(exact, asked(operations={"scans": 1.0})))
    assert none == "ONE: no answer, every row is refused"


def test_rates_that_the_device_bounds_say_nothing_of_the_processor() -> None:
    bound = [dataclasses.replace(of, device_per_s=of.per_s * 1.1, way=EMBEDDED) for of in swept()]
    model = build(bound)
    requirement = asked(system="embedded")
    assert one(model, requirement, EMBEDDED).refused == "no campaign measured reads of aiodb, values on SSD"
    timed = [dataclasses.replace(of, cpu_us=5.0) for of in bound]
    found = one(build(timed), asked(system="embedded", operations={"reads": 200_000.0}), EMBEDDED)
    assert found.by_resource["processor"] == pytest.approx(0.5), "two cores of 5 us each do 400,000"
    assert found.by_resource["reads"] == pytest.approx(0.2 * 1.1)


def test_a_small_part_of_a_mix_says_nothing_of_its_kind() -> None:
    mean_us = {"scans": 1000.0, "inserts": 500.0}
    mixed = observation(mix={"scans": 0.95, "inserts": 0.05}, clients=8.0, mean_us=mean_us, p99_us={})
    (curve,) = curves([mixed])
    assert (curve.kind, curve.mixed) == ("scans", True)
    assert curve.points[0].per_s == pytest.approx(8000.0), "eight clients that wait a millisecond each time"


def test_a_curve_says_how_late_a_rate_is() -> None:
    (curve,) = curves(swept())
    assert curve.p99_us(LAW.per_s(8)) == pytest.approx(8000.0)
    assert curve.p99_us(1.0) == 1000.0
    between = curve.p99_us((LAW.per_s(8) + LAW.per_s(16)) / 2)
    assert between is not None
    assert 8000 < between < 16000
    assert curve.per_s(128) is None, "more clients than were measured"


def test_the_facts_are_those_of_the_documents() -> None:
    operations = (CHECKOUT / "docs" / "operations.md").read_text()
    assert f"about {facts.INDEX_BYTES_PER_KEY.value:.0f} bytes a key" in operations
    assert f"keys of {facts.INDEX_KEY_BYTES} bytes" in operations
    assert f"a record takes {facts.RECORD_HEADER_BYTES.value:.0f} bytes beside key and value" in operations
    assert f"rounded up to {facts.RECORD_ROUNDING}" in operations
    assert f"a value from {facts.OWN_SECTORS_FROM:,} bytes on takes whole\n  sectors" in operations
    assert f"plan for {facts.AIODB_SPACE.value} times the live bytes" in operations
    cassandra = (CHECKOUT / "docs" / "cassandra.md").read_text()
    assert f"{facts.CASSANDRA_MEMORY_GB.value * 1000:,.0f} MB" in cassandra
    assert f"the disk reads {facts.READ_AHEAD_BYTES // 1024} KB ahead" in cassandra


def test_published_evidence_is_read_with_what_it_was_measured_on(found: list[Observation]) -> None:
    sources = {of.source for of in found}
    assert {"load", "threads", "grow", "queue-depth", "cassandra-in-memory", "cassandra-limited"} <= sources
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
    (tmp_path / "cassandra-mix.json").write_text('{"workload": "mix"}\n')
    with pytest.raises(HarnessError, match=r"cassandra-mix.json has no rounds of a bench"):
        list(evidence.of_benches(tmp_path))
