"""What reports show of the law of scaling: each number of clients predicted from the others."""

import dataclasses
from collections.abc import Callable, Mapping

import pytest
from clusters import CELLS, campaign_of, results_of

from harness.experiments.base import Experiment
from harness.experiments.cassandra import Cassandra
from harness.experiments.queue_depth import QueueDepth
from harness.experiments.ycsb import Ycsb
from harness.fields import Value
from harness.outcomes import Outcome
from harness.plan import runs
from harness.report.charts import drawn
from harness.report.figure import Figure, Look
from harness.report.figures.registry import figures_of
from harness.results import Results
from harness.rows import Row
from harness.run import Run
from harness.scaling import Law

COUNTS = (1, 2, 4, 8, 16, 32)
LAW = Law(0.001, 0.0002, 0.000001)
ONE_NODE: Mapping[str, tuple[Value, ...]] = {
    **CELLS, "nodes": (1,), "replication": (1,), "engine": ("aiodb",), "level": ("ONE",),
}  # fmt: skip


def law_per_s(clients: Value) -> float:
    return LAW.per_s(float(clients))


def outcome(run: Run, store: str, rows: tuple[Row, ...]) -> Outcome:
    return Outcome(run.id, store, 1, "2026-01-31T12:00:00Z", 9.0, (), rows, ())


def one_node(per_s: Callable[[Value], float] = law_per_s, counts: tuple[int, ...] = COUNTS) -> Results:
    """One node of aiodb under each count of clients, by the law where nothing else is said."""
    empty = results_of(Cassandra(), {**ONE_NODE, "threads": counts}, "cassandra")
    found = {}
    for run in empty.planned:
        rows = [Row(of, {"operations_per_s": per_s(of["threads"])}, (0.0, 9.0)) for of in run.points()]
        found[run.id] = outcome(run, "cassandra", tuple(rows))
    return dataclasses.replace(empty, outcomes=found)


def embedded(
    experiment: Experiment,
    axes: dict[str, tuple[Value, ...]],
    row_of: Callable[[Mapping[str, Value]], Row],
    **given: Value,
) -> Results:
    """aiodb in the process of a bench, a row for each point."""
    campaign, variant = campaign_of(experiment, axes, "aiodb", **given)
    planned = tuple(runs(campaign, variant))
    outcomes = {run.id: outcome(run, "aiodb", tuple(map(row_of, run.points()))) for run in planned}
    return dataclasses.replace(one_node(), campaign=campaign, variant=variant, planned=planned, outcomes=outcomes)


def predicted(results: Results) -> list[Figure]:
    figures = figures_of(results)
    return [of for of in figures if isinstance(of, Figure) and "predicted from the others" in of.title]


def test_a_sweep_over_clients_shows_what_the_law_says_of_each() -> None:
    figures = predicted(one_node())
    assert [of.title.partition(":")[0] for of in figures] == ["inserts, aiodb", "reads, aiodb"]
    ours, law = figures[0].series
    assert law.look is Look.PREDICTED
    assert [mark.y for mark in law.marks] == pytest.approx([mark.y for mark in ours.marks[1:]])
    assert "off by 0%" in figures[0].note
    assert drawn(figures[0])


def test_few_counts_of_clients_show_no_law() -> None:
    assert not predicted(one_node(counts=(1, 2, 4)))


def test_a_store_without_cassandra_shows_it_as_well() -> None:
    axes: dict[str, tuple[Value, ...]] = {"threads": COUNTS, "workload": ("workloadc", "writeonly")}

    def row(point: Mapping[str, Value]) -> Row:
        values = {"operations_per_s": law_per_s(point["threads"]), "read_p99_us": 1000.0, "insert_p99_us": 1000.0}
        return Row(point, values, (0.0, 9.0), ceiling_per_s=2000.0)

    results = embedded(Ycsb(), axes, row, records=1000, seconds=20, durability="sync")
    titles = [figure.title for figure in figures_of(results)]
    assert titles[:2] == ["C, reads: throughput", "C, reads: 99th percentile"]
    assert [of.title.partition(":")[0] for of in predicted(results)] == ["C, reads, aiodb", "inserts, aiodb"]


def test_gets_in_flight_count_as_clients() -> None:
    axes: dict[str, tuple[Value, ...]] = {"index": ("lmdb",), "backend": ("uring",), "threads": (2,), "depth": COUNTS}

    def row(point: Mapping[str, Value]) -> Row:
        return Row(point, {"gets_per_s": law_per_s(point["depth"]), "p99_us": 1000.0, "ratio": 1.0}, (0.0, 9.0))

    (figure,) = predicted(embedded(QueueDepth(), axes, row))
    assert [mark.x for mark in figure.series[1].marks] == list(COUNTS[1:])
    assert "off by 0%" in figure.note


def test_a_law_that_misses_its_bar_is_said_to() -> None:
    # As reads of one node were once measured, where carrying the last point forward is off by 26 %.
    rates = {2: 3403.0, 6: 5581.0, 16: 8490.0, 48: 7449.0, 128: 9027.0}
    figures = predicted(one_node(lambda clients: rates[int(clients)], tuple(rates)))
    assert len(figures) == 2
    words = "the data do not support the law: its error is more than half that of carrying the last point forward"
    assert all(words in of.note for of in figures)
