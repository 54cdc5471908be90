"""Sizings from made-up measurements, whose answer can be worked out."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from clusters import results_of
from sizings import COUNTS, EMBEDDED, LAW, MOST, OWN, asked, node, observation, one, swept

from harness.experiments.queue_depth import QueueDepth
from harness.sizing import findings
from harness.sizing.curves import curves
from harness.sizing.evidence import Observation, of_results
from harness.sizing.model import build, growth_points
from harness.sizing.solve import size


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
    stored = 1024 * 1.5 + 34
    assert found.by_resource["disk space"] == pytest.approx(stored * 1e9 / 1000e9)
    large = one(model, asked(data={"rows": 1e9, "record_bytes": 2018, "key_bytes": 18}))
    sectors = (2048 + 64) * 1.5 + 34
    assert large.by_resource["disk space"] == pytest.approx(sectors * 1e9 / 1000e9), "a value on sectors of its own"


def test_long_keys_take_more_of_the_index_and_are_a_guess() -> None:
    model = build(swept())
    roomy = node(disk_gb=1e9, memory_gb=101.393)
    found = one(model, asked(data={"rows": 1e10, "record_bytes": 1000, "key_bytes": 118}, node=roomy))
    assert found.by_resource["memory"] == pytest.approx((34 + 125) * 1e10 / 100e9, rel=0.02), (
        "a byte and a quarter for each of 100"
    )
    assert "the index was measured with keys of 18 bytes, not 118" in found.guesses


def test_memory_holds_the_index_or_all_data() -> None:
    model = build([*swept(), *swept(way=OWN)])
    data = {"rows": 1e10, "record_bytes": 1000, "key_bytes": 18}
    requirement = asked(data=data, node=node(disk_gb=1e9, memory_gb=101.393))
    assert one(model, requirement).by_resource["memory"] == pytest.approx(34 * 1e10 / 100e9)
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


def test_a_guess_that_changes_no_answer_is_not_named() -> None:
    model = build([*swept(), *swept("inserts")])
    far = asked(operations={"reads": 100.0}, data={"rows": 1e10, "record_bytes": 1000})
    assert one(model, far).binds == "disk space"
    assert one(model, far).guesses == (), "how much a node reads does not matter, however unsure that is"
    small = asked(operations={"reads": MOST, "inserts": 1.0}, durability="sync", node=node(disk_writes_per_s=1e9))
    found = one(build([*swept(), *swept("inserts"), _commits()]), small)
    assert not any("durability" in of for of in found.guesses)


def test_the_cheapest_is_sure_only_where_bands_lie_apart() -> None:
    exact = build([*swept(), *swept(way=OWN, source="other")])
    dear = asked(data={"rows": 1e9, "record_bytes": 1000}, node=node(memory_gb=200.0, disk_gb=1e5))
    (sure,) = findings.cheapest(size(exact, dear))
    assert sure == "ONE: the cheapest is 1 × same, aiodb, values on SSD, 100 USD: its band lies below all others"
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


def test_points_that_differ_in_more_than_their_clients_are_no_one_curve() -> None:
    axes = {"index": ("lmdb", "hash"), "backend": ("uring",), "threads": (1,), "depth": COUNTS}
    results = results_of(QueueDepth(), axes, "aiodb", gets_per_s=1000.0, p99_us=10.0)
    found = curves(of_results(results, "queue-depth"))
    assert {of.setting: len(of.points) for of in found} == {"LMDB index": len(COUNTS), "hash index": len(COUNTS)}
    assert all(of.held_out and of.law for of in found)
    assert [
        of.setting
        for of in curves(
            of_results(
                results_of(QueueDepth(), {**axes, "index": ("lmdb",)}, "aiodb", gets_per_s=1000.0), "queue-depth"
            )
        )
    ] == [""]


def test_nodes_are_compared_where_only_their_number_differs() -> None:
    """One node that was measured fast, and four that were measured slowly in another way, say nothing of growth."""
    way, other = (("level", "ONE"),), (("level", "ALL"),)
    apart = [observation(nodes=1, setting=way), observation(nodes=4, setting=other)]
    assert growth_points(apart) == []
    assert [
        of.nodes for of in growth_points([observation(nodes=1, setting=way), observation(nodes=4, setting=way)])
    ] == [4]
