"""What is estimated by a law of scaling, and what is not."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from clusters import CELLS, campaign_of, results_of

from harness import planfile
from harness.capacity import Capacity
from harness.errors import HarnessError
from harness.estimate import Nodes, Prices, Requirement, estimate, text
from harness.experiments.base import Row
from harness.experiments.cassandra import Cassandra
from harness.experiments.grow import Grow
from harness.experiments.queue_depth import QueueDepth
from harness.experiments.ycsb import Ycsb
from harness.fields import Value
from harness.plan import runs
from harness.report.charts import drawn
from harness.report.figures import Look
from harness.report.publication import is_published, read_published
from harness.results import Outcome, Results
from harness.scaling import Law

COUNTS = (1, 2, 4, 8, 16, 32)
PRICES = Prices(3000, 4.0, 0.1, 256, 8000)
ASKED = Requirement(20_000, 5_000, 50, 500, 1, 100, 3, "QUORUM", 0.3)
LAW = Law(0.001, 0.0002, 0.000001)
ONE_NODE: Mapping[str, tuple[Value, ...]] = {
    **CELLS, "nodes": (1,), "replication": (1,), "engine": ("aiodb",), "level": ("ONE",), "threads": COUNTS,
}  # fmt: skip
NO_LIMITS: Mapping[str, Value] = {}
READS = Requirement(20_000, 0, 50, 500, 0, 0, 1, "ONE", 0.0)


def capacities_of(results: Results, engine: str, asked: Requirement) -> tuple[Capacity, ...]:
    (load,) = filter(None, (mode.load for mode in estimate(results, [engine], asked, PRICES).modes))
    return load.capacities


def by_clients(point: Mapping[str, Value]) -> float:
    return LAW.per_s(float(point["threads"]))


def cells(
    per_s: Callable[[Mapping[str, Value]], float] = by_clients,
    p99_us: float = 1000.0,
    marks: tuple[str, ...] = (),
    parameters: Mapping[str, Value] = NO_LIMITS,
    **axes: tuple[Value, ...],
) -> Results:
    """Nodes of engines under each count of clients, by the law where nothing else is said."""
    empty = results_of(Cassandra(), {**ONE_NODE, **axes}, "cassandra")
    outcomes = {}
    for run in empty.planned:
        rows = []
        for point in run.points():
            kind = "read" if point["workload"] == "readonly" else "insert"
            values = {"operations_per_s": per_s(point), f"{kind}_p99_us": p99_us * float(point["threads"])}
            rows.append(Row(point, values, (0.0, 9.0), marks=marks))
        outcomes[run.id] = Outcome(run.id, "cassandra", 1, "2026-01-31T12:00:00Z", 9.0, (), tuple(rows), ())
    variant = dataclasses.replace(
        empty.variant, parameters=MappingProxyType({**empty.variant.parameters, **parameters})
    )
    return dataclasses.replace(empty, variant=variant, outcomes=outcomes)


def measured(noise: float = 0.0, counts: tuple[int, ...] = COUNTS, p99_us: float = 1000.0) -> Results:
    """One node of aiodb under each count of clients."""
    signs = {count: (-1) ** number for number, count in enumerate(counts)}
    return cells(lambda point: by_clients(point) * (1 + noise * signs[int(point["threads"])]), p99_us, threads=counts)


def test_nodes_are_those_of_load_bytes_and_replicas() -> None:
    found = estimate(measured(), ["aiodb"], ASKED, PRICES)
    capacity = LAW.per_s(32)
    # Two of three replicas answer a read, three take an insert.
    expected = (20_000 * 2 + 5_000 * 3) / capacity / 0.7
    ssd, memory = found.modes
    assert dataclasses.astuple(ssd.nodes) == (math.ceil(expected),) * 3, "the law is exact here, and so is the band"
    assert found.gigabytes == 600
    assert memory.nodes_for_bytes == pytest.approx(600 * 3 / 0.7 / 256)
    said = text(found, ASKED)
    assert "their reads add up was not measured here" in said
    assert "values on SSD, aiodb: at least" in said


def test_bytes_can_take_more_nodes_than_load_does() -> None:
    asked = Requirement(10, 0, 50, 10_000, 0, 0, 3, "ONE", 0.0)
    ssd, memory = estimate(measured(), ["aiodb"], asked, PRICES).modes
    assert (ssd.nodes.expected, memory.nodes.least) == (4, math.ceil(30_000 / 256))


def test_a_latency_lets_only_fewer_clients_in() -> None:
    asked = Requirement(1000, 0, 9, 1, 0, 0, 1, "ONE", 0.0)
    (capacity,) = capacities_of(measured(), "aiodb", asked)
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
        estimate(results, ["aiodb"], asked, PRICES)


def test_an_engine_that_was_not_measured_has_no_estimate() -> None:
    with pytest.raises(HarnessError, match="no single node of engine 'trie' under numbers of clients: it has aiodb"):
        estimate(measured(), ["trie"], ASKED, PRICES)


def test_a_sweep_over_clients_shows_what_the_law_says_of_each() -> None:
    results = measured()
    figures = [of for of in results.campaign.experiment.figures(results) if "predicted from the others" in of.title]
    assert [of.title.partition(":")[0] for of in figures] == ["inserts, aiodb", "reads, aiodb"]
    (ours, predicted) = figures[0].series  # type: ignore[union-attr]
    assert predicted.look is Look.PREDICTED
    assert [mark[1] for mark in predicted.marks] == pytest.approx([mark[1] for mark in ours.marks[1:]])
    assert "off by 0%" in figures[0].note
    assert drawn(figures[0])
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
    assert [of.per_s for of in capacities_of(results, "aiodb", ASKED)] == pytest.approx([LAW.per_s(32)] * 2)
    titles = [figure.title for figure in campaign.experiment.figures(results)]
    assert titles[:2] == ["C, reads: throughput", "C, reads: 99th percentile"]
    assert any("predicted from the others" in title for title in titles)
    with pytest.raises(HarnessError, match="no single node of engine 'rocksdb'"):
        estimate(results, ["rocksdb"], ASKED, PRICES)


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
    (found,) = capacities_of(results, "aiodb", dataclasses.replace(ASKED, inserts_per_s=0))
    assert (found.clients, found.per_s) == pytest.approx((32, LAW.per_s(32))), "16 of each of two threads"
    with pytest.raises(HarnessError, match="inserts were measured at 0"):
        estimate(results, ["aiodb"], ASKED, PRICES)
    assert "predicted from the others" in campaign.experiment.figures(results)[-1].title


def test_points_that_differ_in_more_than_their_clients_are_no_curve() -> None:
    with pytest.raises(HarnessError, match="measured in several ways"):
        estimate(cells(entry=("token", "one")), ["aiodb"], ASKED, PRICES)


def test_a_mode_whose_rate_was_not_measured_has_none() -> None:
    ssd, memory = estimate(measured(), ["aiodb"], READS, PRICES).modes
    assert ssd.load is not None
    assert memory.load is None
    assert memory.nodes == Nodes(2, 2, math.inf), "of its bytes alone"
    memory, ssd = reversed(estimate(cells(engine=("stock",)), ["stock"], READS, PRICES).modes)
    assert memory.load is not None
    assert ssd.load is None, "what Cassandra's memtable does with few data is no rate of an SSD"


def test_data_larger_than_the_memory_are_not_in_it() -> None:
    limited: dict[str, Value] = {"records": 2_000_000, "node_memory_mib": 1000}
    ssd, memory = estimate(cells(engine=("stock",), parameters=limited), ["stock"], READS, PRICES).modes
    assert (ssd.load is not None, memory.load) == (True, None)
    assert "load" not in text(estimate(cells(), ["aiodb"], READS, PRICES), READS).partition("all in memory")[2]


def test_each_mode_has_the_rates_of_the_engine_that_kept_its_data_so() -> None:
    results = cells(
        lambda point: by_clients(point) * (10 if point["engine"] == "stock" else 1), engine=("aiodb", "stock")
    )
    found = estimate(results, ["aiodb", "stock"], READS, PRICES)
    ssd, memory = found.modes
    assert ssd.load is not None
    assert memory.load is not None
    assert memory.load.capacities[0].per_s == pytest.approx(10 * ssd.load.capacities[0].per_s)
    assert found.cheapest() is memory, "two nodes for the bytes, where SSD takes seven for the load"
    assert "cheapest: all in memory" in text(found, READS)
    with pytest.raises(HarnessError, match="aiodb and aiodb were both measured with values on SSD"):
        estimate(results, ["aiodb", "aiodb"], READS, PRICES)


def test_the_cheapest_is_named_only_where_the_data_say_so() -> None:
    both = cells(engine=("aiodb", "stock"))
    dear = dataclasses.replace(PRICES, dram_per_gigabyte=40.0)
    assert "cheapest, if nodes add up: values on SSD" in text(estimate(both, ["aiodb", "stock"], READS, dear), READS)
    few = dataclasses.replace(READS, gigabytes=0.001)
    assert "differ by less than they may be off" in text(
        estimate(cells(scattered, engine=("aiodb", "stock")), ["aiodb", "stock"], few, PRICES), few
    )
    assert "no rate of all in memory was measured" in text(estimate(measured(), ["aiodb"], few, PRICES), few)
    more = dataclasses.replace(READS, gigabytes=50_000)
    said = text(estimate(measured(), ["aiodb"], more, PRICES), more)
    assert "alone make all in memory dearer, whatever its rate" in said
    assert "measured by no campaign: aiodb's own modes" in said


def scattered(point: Mapping[str, Value]) -> float:
    return by_clients(point) * (1.1 if int(point["threads"]) in (2, 8) else 1.0)


def test_an_answer_says_what_it_rests_on() -> None:
    marks = ("not flat within 20 s", "disturbed: others", "disturbed: guests")
    said = text(estimate(cells(marks=marks), ["aiodb"], READS, PRICES), READS)
    assert "rests on 6 points, each measured once, 6 not flat, 6 disturbed" in said
    assert "the data support the law" in said
    results = cells()
    ((run_id, outcome),) = results.outcomes.items()
    lost = dataclasses.replace(outcome, rows=tuple(row for row in outcome.rows if row.levels["threads"] != 32))
    said = text(estimate(dataclasses.replace(results, outcomes={run_id: lost}), ["aiodb"], READS, PRICES), READS)
    assert "rests on 5 of 6 points" in said


def test_a_mark_of_some_passes_and_how_wide_intervals_are_is_said() -> None:
    results = cells()
    ((run_id, outcome),) = results.outcomes.items()
    passes = tuple(
        dataclasses.replace(row, marks=marks) for row in outcome.rows for marks in (("not flat within 9 s",), ())
    )
    twice = {run_id: dataclasses.replace(outcome, rows=passes)}
    said = text(estimate(dataclasses.replace(results, outcomes=twice), ["aiodb"], READS, PRICES), READS)
    assert "rests on 6 points, each measured once, 6 not flat at times" in said, "passes are no repetitions"
    again, run = {}, results.planned[0]
    for repetition, factor in ((1, 1.0), (2, 1.2)):
        repeated = dataclasses.replace(run, repetition=repetition)
        rows = tuple(
            dataclasses.replace(row, values={name: factor * of for name, of in row.values.items()})
            for row in outcome.rows
        )
        again[repeated.id] = dataclasses.replace(outcome, rows=rows)
    planned = tuple(dataclasses.replace(run, repetition=repetition) for repetition in (1, 2))
    said = text(
        estimate(dataclasses.replace(results, planned=planned, outcomes=again), ["aiodb"], READS, PRICES), READS
    )
    assert "rests on 6 points, each measured 2 times, 6 with an interval over 10%" in said


def test_a_law_that_misses_its_bar_is_no_silent_answer() -> None:
    # As reads of one node were once measured, where carrying the last point forward is off by 26 %.
    rates = {2: 3403.0, 6: 5581.0, 16: 8490.0, 48: 7449.0, 128: 9027.0}
    results = cells(lambda point: rates[int(point["threads"])], threads=tuple(rates))
    words = "the data do not support the law: its error is more than half that of carrying the last point forward"
    assert words in text(estimate(results, ["aiodb"], dataclasses.replace(READS, p99_ms=200), PRICES), READS)
    notes = [of.note for of in results.campaign.experiment.figures(results) if "predicted from the others" in of.title]
    assert notes
    assert all(words in note for note in notes)


def nodes_of(*times: float, clients: tuple[int, ...] = COUNTS) -> Results:
    """Clusters of one node and more, which do so many times what one does."""
    gained = dict(enumerate(times, 1))
    return cells(
        lambda point: by_clients(point) * gained[int(point["nodes"])],
        nodes=tuple(number for number, of in gained.items() if of),
        threads=clients,
    )


def test_how_nodes_add_up_is_taken_from_what_was_measured() -> None:
    # What Gunther's law gives with a queueing of a fifth.
    times = [nodes / (1 + 0.2 * (nodes - 1)) for nodes in (1, 2, 3, 4)]
    wanted = dataclasses.replace(READS, reads_per_s=LAW.per_s(32) * 2.4)
    found = estimate(nodes_of(*times), ["aiodb"], wanted, PRICES)
    assert found.modes[0].nodes.expected == 4, "of which three do 2.1 times what one does, and four 2.5 times"
    said = text(found, wanted)
    assert "4 did 2.5 times the reads of one, by 32 clients each time" in said
    assert "N × one node is off by 60%; fitted to fewer, the law is off by 0%" in said
    assert "of more nodes nothing was measured" in said
    assert "at least" not in said.partition("all in memory")[0]
    with pytest.raises(HarnessError, match=r"takes 10\.0 times what one node of aiodb does"):
        estimate(nodes_of(*times), ["aiodb"], dataclasses.replace(READS, reads_per_s=LAW.per_s(32) * 10), PRICES)


def test_another_campaign_can_say_how_nodes_add_up() -> None:
    times = {1: 500.0, 2: 836.0, 3: 1064.0, 4: 1200.0}
    axes: dict[str, tuple[Value, ...]] = {"engine": ("aiodb",), "nodes": tuple(times)}
    grown = results_of(Grow(), axes, "cassandra", operations_per_s=0.0)
    ((run_id, outcome),) = grown.outcomes.items()
    rows = tuple(
        dataclasses.replace(
            row, values={"operations_per_s": times[int(row.levels["nodes"])]}, marks=("shared CPU: shape only",)
        )
        for row in outcome.rows
    )
    grown = dataclasses.replace(grown, outcomes={run_id: dataclasses.replace(outcome, rows=rows)})
    wanted = dataclasses.replace(READS, reads_per_s=LAW.per_s(32) * 2, inserts_per_s=1.0)
    found = estimate(measured(), ["aiodb"], wanted, PRICES, grown)
    assert found.modes[0].nodes.expected == 3
    said = text(found, wanted)
    assert "4 shared CPU: shape only" in said
    assert "off by 67%; fitted to fewer, the law is off by 2%" in said
    assert "their inserts add up was not measured here" in said, "reads say nothing of inserts"


def test_numbers_of_nodes_too_few_for_a_law_are_said_with_what_they_show() -> None:
    wanted = dataclasses.replace(READS, reads_per_s=LAW.per_s(32) * 1.9)
    found = estimate(nodes_of(1.0, 0.0, 0.0, 2.0), ["aiodb"], wanted, PRICES)
    said = text(found, wanted)
    assert "N × one node is off by 100%, and is assumed all the same" in said
    assert "a law takes 4 numbers of nodes" in said
    assert "values on SSD, aiodb: at least 2 nodes" in said


def test_a_law_of_nodes_that_is_off_is_not_used() -> None:
    wanted = dataclasses.replace(READS, reads_per_s=LAW.per_s(32) * 1.9)
    said = text(estimate(nodes_of(1.0, 1.9, 2.8, 1.5), ["aiodb"], wanted, PRICES), wanted)
    assert "is assumed all the same: count on more nodes; fitted to fewer, the law is off by" in said
    assert "values on SSD, aiodb: at least 2 nodes" in said


def test_limits_of_nodes_are_said() -> None:
    results = cells(parameters={"node_writes_per_s": 120})
    assert "cells quick (each node limited: node_writes_per_s=120)" in text(
        estimate(results, ["aiodb"], READS, PRICES), READS
    )


PUBLISHED = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("folder", sorted(PUBLISHED.glob("**/quick")), ids=lambda of: of.parent.name)
def test_what_was_published_can_be_read_again(folder: Path) -> None:
    assert is_published(folder)
    name = folder.parent.name
    found = read_published(folder, planfile.read(PUBLISHED.parent / "campaigns" / f"{name}.toml"))
    summary = json.loads((folder / "summary.json").read_text())
    points = found.points()
    assert [dict(point.levels) for point in points] == [point["levels"] for point in summary["points"]]
    assert [point.marks() for point in points] == [point["marks"] for point in summary["points"]]
    for point, published in zip(points, summary["points"], strict=True):
        for metric, of in published["values"].items():
            again = point.summary(metric)
            assert again is not None
            assert again.median == pytest.approx(of["median"])
