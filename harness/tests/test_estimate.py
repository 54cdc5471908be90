"""The law of scaling, what it is worth, and what is estimated by it."""

import dataclasses
import math

import pytest
from clusters import CELLS, campaign_of, results_of

from harness.errors import HarnessError
from harness.estimate import Prices, Requirement, estimate, text
from harness.experiments.base import Row
from harness.experiments.cassandra import Cassandra
from harness.experiments.queue_depth import QueueDepth
from harness.experiments.ycsb import Ycsb
from harness.fields import Value
from harness.plan import runs
from harness.report.charts import draw
from harness.report.figures import Look
from harness.results import Outcome, Results
from harness.scaling import Law, errors, fit, held_out

COUNTS = (1, 2, 4, 8, 16, 32)
PRICES = Prices(3000, 4.0, 0.1, 256, 8000)
ASKED = Requirement(20_000, 5_000, 50, 500, 1, 100, 3, "QUORUM", 0.3)
LAW = Law(0.001, 0.0002, 0.000001)


def test_a_law_is_found_again() -> None:
    found = fit({float(of): LAW.per_s(of) for of in COUNTS})
    assert (found.alone, found.queueing, found.crosstalk) == pytest.approx((LAW.alone, LAW.queueing, LAW.crosstalk))


def test_a_law_grows_at_most_by_its_clients_whatever_was_measured() -> None:
    found = fit({1.0: 100.0, 2.0: 300.0, 4.0: 900.0})
    assert found.per_s(8) <= 8 * found.per_s(1) * (1 + 1e-9)


def test_a_point_is_predicted_without_itself() -> None:
    points = {float(of): LAW.per_s(of) for of in COUNTS}
    wrong = {**points, 32.0: 1.0}
    (last,) = [of for of in held_out(wrong) if of.clients == 32]
    assert last.law_per_s == pytest.approx(points[32.0], rel=1e-6)
    assert last.error(last.law_per_s) == pytest.approx(points[32.0] - 1, rel=1e-3)
    assert last.carried_per_s == points[16.0]
    assert last.linear_per_s == 2 * points[16.0]


def test_a_law_beats_carrying_forward_and_scaling_where_it_holds() -> None:
    found = errors(held_out({float(of): LAW.per_s(of) for of in COUNTS}))
    assert found.law < 1e-6
    assert found.carried > 0.05
    assert found.linear > 0.05


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_points_are_no_curve(count: int) -> None:
    with pytest.raises(ValueError, match="at least three"):
        fit({float(of): 1.0 for of in range(1, count + 1)})


def measured(noise: float = 0.0, counts: tuple[int, ...] = COUNTS, p99_us: float = 1000.0) -> Results:
    """One node of aiodb under each count of clients, by the law."""
    axes = {**CELLS, "nodes": (1,), "replication": (1,), "engine": ("aiodb",), "level": ("ONE",), "threads": counts}
    empty = results_of(Cassandra(), axes, "cassandra")
    (run,) = empty.planned
    rows = []
    for number, point in enumerate(run.points()):
        clients = int(point["threads"])
        rate = LAW.per_s(clients) * (1 + noise * (-1) ** number)
        kind = "read" if point["workload"] == "readonly" else "insert"
        rows.append(Row(point, {"operations_per_s": rate, f"{kind}_p99_us": p99_us * clients}, (0.0, 9.0)))
    outcome = Outcome(run.id, "cassandra", 1, "2026-01-31T12:00:00Z", 9.0, (), tuple(rows), ())
    return Results(empty.folder, empty.campaign, empty.variant, empty.origin, empty.planned, {run.id: outcome})


def test_nodes_are_those_of_load_bytes_and_replicas() -> None:
    found = estimate(measured(), "aiodb", ASKED, PRICES)
    capacity = LAW.per_s(32)
    # Two of three replicas answer a read, three take an insert.
    expected = (20_000 * 2 + 5_000 * 3) / capacity / 0.7
    ssd, memory = found.modes
    assert ssd.nodes == math.ceil(expected)
    assert ssd.nodes_for_load == pytest.approx(expected, rel=1e-6)
    assert found.gigabytes == 600
    assert memory.nodes_for_bytes == pytest.approx(600 * 3 / 0.7 / 256)
    assert found.cheapest() is ssd
    assert "was not measured here" in text(found, ASKED)


def test_bytes_can_take_more_nodes_than_load_does() -> None:
    asked = Requirement(10, 0, 50, 10_000, 0, 0, 3, "ONE", 0.0)
    ssd, memory = estimate(measured(), "aiodb", asked, PRICES).modes
    assert (ssd.nodes, memory.nodes) == (4, math.ceil(30_000 / 256))


def test_a_latency_lets_only_fewer_clients_in() -> None:
    asked = Requirement(1000, 0, 9, 1, 0, 0, 1, "ONE", 0.0)
    (capacity,) = estimate(measured(), "aiodb", asked, PRICES).capacities
    assert capacity.clients == 8


@pytest.mark.parametrize(
    ("results", "asked", "reason"),
    [
        (measured(noise=0.6), ASKED, "do not support an estimate"),
        (measured(counts=(1, 2, 4)), ASKED, "4 at least"),
        (measured(p99_us=1e6), ASKED, "no number of clients had reads within 50 ms"),
        (measured(), Requirement(0, 0, 50, 1, 0, 0, 1, "ONE", 0), "nothing is asked for"),
        (measured(), Requirement(1, 0, 50, 1, 0, 0, 2, "THREE", 0), "more replicas"),
    ],
)
def test_what_the_data_do_not_support_is_said(results: Results, asked: Requirement, reason: str) -> None:
    with pytest.raises(HarnessError, match=reason):
        estimate(results, "aiodb", asked, PRICES)


def test_an_engine_that_was_not_measured_has_no_estimate() -> None:
    with pytest.raises(HarnessError, match="no single node of engine 'trie'"):
        estimate(measured(), "trie", ASKED, PRICES)


def test_a_sweep_over_clients_shows_what_the_law_says_of_each() -> None:
    results = measured()
    figures = [of for of in results.campaign.experiment.figures(results) if "predicted from the others" in of.title]
    assert [of.title.partition(":")[0] for of in figures] == ["writeonly, aiodb", "readonly, aiodb"]
    (ours, predicted) = figures[0].series  # type: ignore[union-attr]
    assert predicted.look is Look.PREDICTED
    assert [mark[1] for mark in predicted.marks] == pytest.approx([mark[1] for mark in ours.marks[1:]])
    assert "off by 0%" in figures[0].note
    assert "<svg" in draw(figures[0], "x")
    few = measured(counts=(1, 2, 4))
    assert not [of for of in few.campaign.experiment.figures(few) if "predicted" in of.title]


def test_a_store_without_cassandra_can_be_estimated_as_well() -> None:
    axes: dict[str, tuple[Value, ...]] = {"threads": COUNTS, "workload": ("workloadc", "writeonly")}
    given: dict[str, Value] = {"records": 1000, "seconds": 20, "durability": "sync"}
    campaign, variant = campaign_of(Ycsb(), axes, "aiodb", **given)
    outcomes = {}
    planned = tuple(runs(campaign, variant))
    for run in planned:
        rate = LAW.per_s(int(run.levels["threads"]))
        values = {"operations_per_s": rate, "read_p99_us": 1000.0, "insert_p99_us": 1000.0}
        rows = tuple(Row(point, values, (0.0, 9.0), ceiling_per_s=2000.0) for point in run.points())
        outcomes[run.id] = Outcome(run.id, "aiodb", 1, "2026-01-31T12:00:00Z", 9.0, (), rows, ())
    results = dataclasses.replace(measured(), campaign=campaign, variant=variant, planned=planned, outcomes=outcomes)
    found = estimate(results, "aiodb", ASKED, PRICES)
    assert [of.per_s for of in found.capacities] == pytest.approx([LAW.per_s(32)] * 2)
    titles = [figure.title for figure in campaign.experiment.figures(results)]
    assert titles[:2] == ["C: throughput", "C: 99th percentile"]
    assert any("predicted from the others" in title for title in titles)
    with pytest.raises(HarnessError, match="no single node of engine 'rocksdb'"):
        estimate(results, "rocksdb", ASKED, PRICES)


def test_gets_in_flight_count_as_clients() -> None:
    axes: dict[str, tuple[Value, ...]] = {"index": ("lmdb",), "backend": ("uring",), "threads": (2,), "depth": COUNTS}
    campaign, variant = campaign_of(QueueDepth(), axes, "aiodb")
    (run,) = planned = tuple(runs(campaign, variant))
    rows = tuple(
        Row(point, {"gets_per_s": LAW.per_s(2 * int(point["depth"])), "p99_us": 1000.0, "ratio": 1.0}, (0.0, 9.0))
        for point in run.points()
    )
    outcomes = {run.id: Outcome(run.id, "aiodb", 1, "2026-01-31T12:00:00Z", 9.0, (), rows, ())}
    results = dataclasses.replace(measured(), campaign=campaign, variant=variant, planned=planned, outcomes=outcomes)
    (found,) = estimate(results, "aiodb", dataclasses.replace(ASKED, inserts_per_s=0), PRICES).capacities
    assert (found.clients, found.per_s) == pytest.approx((32, LAW.per_s(32))), "16 of each of two threads"
    with pytest.raises(HarnessError, match="inserts were measured at 0"):
        estimate(results, "aiodb", ASKED, PRICES)
    assert "predicted from the others" in campaign.experiment.figures(results)[-1].title


def test_points_that_differ_in_more_than_their_clients_are_no_curve() -> None:
    axes = {**CELLS, "nodes": (1,), "replication": (1,), "engine": ("aiodb",), "level": ("ONE",), "threads": COUNTS}
    empty = results_of(Cassandra(), {**axes, "entry": ("token", "one")}, "cassandra")
    (run,) = empty.planned
    rows = tuple(Row(point, {"operations_per_s": 9.0, "read_p99_us": 9.0}, (0.0, 9.0)) for point in run.points())
    outcome = Outcome(run.id, "cassandra", 1, "2026-01-31T12:00:00Z", 9.0, (), rows, ())
    results = Results(empty.folder, empty.campaign, empty.variant, empty.origin, empty.planned, {run.id: outcome})
    with pytest.raises(HarnessError, match="measured in several ways"):
        estimate(results, "aiodb", ASKED, PRICES)
