"""What reports say of a document's finding: that it holds, that it does not, or that nothing can be said."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from clusters import CELLS, campaign_of, results_of

from harness.experiments.base import Experiment
from harness.experiments.cassandra import Cassandra
from harness.experiments.grow import Grow
from harness.experiments.memory_full import MemoryFull
from harness.experiments.queue_depth import QueueDepth
from harness.experiments.registry import EXPERIMENTS
from harness.experiments.ycsb import Ycsb
from harness.fields import Levels, Value
from harness.outcomes import Outcome
from harness.plan import runs
from harness.report.answer import Agreement, Answer
from harness.report.answers.common import grows_until, measured
from harness.report.answers.registry import ANSWERS, answer_of
from harness.report.figures.registry import FIGURES
from harness.results import Results
from harness.rows import DIED

REPETITIONS = 3
Values = Callable[[Levels], Mapping[str, float] | None]


def found(
    experiment: Experiment, axes: Mapping[str, tuple[Value, ...]], store: str, values: Values, **more: Any
) -> Results:
    """A campaign that was measured several times, always the same; a point without values failed."""
    repetitions, marks = more.pop("repetitions", REPETITIONS), more.pop("marks", ())
    once = results_of(experiment, axes, store, **{next(of.name for of in experiment.metrics if of.main): 1.0})
    parameters = MappingProxyType({**once.variant.parameters, **more})
    variant = replace(once.variant, repetitions=repetitions, parameters=parameters)
    planned = tuple(runs(once.campaign, variant))
    rows = {tuple(sorted(row.levels.items())): row for of in once.outcomes.values() for row in of.rows}
    outcomes = {}
    for run in planned:
        said = [(rows[tuple(sorted(point.items()))], values(point)) for point in run.points()]
        kept = tuple(replace(row, values=dict(of), marks=marks) for row, of in said if of is not None)
        outcomes[run.id] = Outcome(run.id, run.store, run.repetition, "2026-01-31T12:00:00Z", 9.0, (), kept, ())
    return replace(once, variant=variant, planned=planned, outcomes=outcomes)


def answer(results: Results) -> Answer:
    return answer_of(results)


def agreement(results: Results) -> Agreement:
    finding = answer(results).finding
    assert finding is not None
    return finding.agreement


def levels(reads: float, inserts: float, **more: Any) -> Results:
    """Throughput at ONE of 1,000/s, and what is left of it at ALL."""

    def values(point: Levels) -> Mapping[str, float]:
        left = reads if point["workload"] == "readonly" else inserts
        return {"operations_per_s": 1000.0 * (left if point["level"] == "ALL" else 1.0)}

    return found(Cassandra(), {**CELLS, "threads": (32,)}, "cassandra", values, **more)


@pytest.mark.parametrize(
    ("reads", "inserts", "said"),
    [
        (0.5, 0.8, Agreement.AGREES),
        (0.5, 1.1, Agreement.DIFFERS),
        (0.9, 0.8, Agreement.DIFFERS),
    ],
)
def test_a_stronger_level_must_cost_reads_most(reads: float, inserts: float, said: Agreement) -> None:
    results = levels(reads, inserts)
    assert agreement(results) is said
    assert f"at ONE and {1000 * reads:.0f}/s at ALL" in answer(results).sentence
    assert f"reads by {100 * (reads - 1):+.0f} to {100 * (reads - 1):+.0f} %".replace("-", "−") in str(
        answer(results).finding
    )


def test_what_was_measured_once_or_had_not_settled_is_not_judged() -> None:
    assert agreement(levels(0.5, 0.8, repetitions=1)) is Agreement.UNKNOWN
    assert agreement(levels(0.5, 0.8, marks=("not flat within 20 s",))) is Agreement.UNKNOWN


def test_a_level_that_failed_is_no_loss_of_all_throughput() -> None:
    def values(point: Levels) -> Mapping[str, float] | None:
        return None if (point["level"], point["workload"]) == ("ALL", "readonly") else {"operations_per_s": 1000.0}

    results = found(Cassandra(), {**CELLS, "threads": (32,)}, "cassandra", values)
    assert "Cassandra's memtable 1.00 K/s at ONE and not measured at ALL" in answer(results).sentence
    assert "100 %" not in answer(results).sentence
    assert agreement(results) is Agreement.UNKNOWN


@pytest.mark.parametrize(("four", "said"), [(3000.0, Agreement.AGREES), (1050.0, Agreement.DIFFERS)])
def test_further_nodes_must_gain(four: float, said: Agreement) -> None:
    axes: dict[str, tuple[Value, ...]] = {
        **CELLS, "nodes": (1, 4), "replication": (1,), "level": ("ONE",), "workload": ("sensor",), "threads": (30,),
    }  # fmt: skip
    results = found(
        Cassandra(), axes, "cassandra", lambda of: {"operations_per_s": four if of["nodes"] == 4 else 1000.0}
    )
    assert agreement(results) is said
    assert "on 1 node and" in answer(results).sentence


@pytest.mark.parametrize(("most", "said"), [(1010.0, Agreement.AGREES), (5000.0, Agreement.DIFFERS)])
def test_more_clients_must_stop_to_gain(most: float, said: Agreement) -> None:
    axes: dict[str, tuple[Value, ...]] = {
        **CELLS, "nodes": (1,), "replication": (1,), "level": ("ONE",), "threads": (2, 8, 32),
    }  # fmt: skip
    rates = {2: 500.0, 8: 1000.0, 32: most}
    results = found(Cassandra(), axes, "cassandra", lambda of: {"operations_per_s": rates[int(of["threads"])]})
    assert agreement(results) is said
    assert ("up to 8 clients" in answer(results).sentence) == (most < 1100)


@pytest.mark.parametrize(("inserts", "reads", "said"), [(1.0, 0.8, Agreement.AGREES), (0.7, 0.8, Agreement.DIFFERS)])
def test_replicas_must_cost_reads_and_strong_inserts_alone(inserts: float, reads: float, said: Agreement) -> None:
    axes: dict[str, tuple[Value, ...]] = {
        **CELLS, "nodes": (5,), "replication": (3, 4, 5), "level": ("THREE", "ALL"), "threads": (32,),
    }  # fmt: skip

    def values(point: Levels) -> Mapping[str, float]:
        strong, reading = point["level"] == "ALL", point["workload"] == "readonly"
        left = reads if reading else 0.6 if strong else inserts
        return {"operations_per_s": 1000.0 * (left if point["replication"] == 5 else 1.0)}

    results = found(Cassandra(), axes, "cassandra", values)
    assert agreement(results) is said
    assert "Cassandra's memtable 1.00 K/s with 3 replicas and 600/s with 5 (−40 %)" in answer(results).sentence


@pytest.mark.parametrize(("most", "said"), [(11.0, Agreement.AGREES), (2.0, Agreement.DIFFERS)])
def test_execution_must_take_no_less_from_some_number_of_clients_on(most: float, said: Agreement) -> None:
    axes: dict[str, tuple[Value, ...]] = {
        **CELLS, "nodes": (1,), "replication": (1,), "level": ("ONE",), "threads": (2, 8, 32),
    }  # fmt: skip
    seconds = {2: 40.0, 8: 11.0, 32: most}

    def values(point: Levels) -> Mapping[str, float]:
        return {"operations_per_s": 1000.0, "execution_s": seconds[int(point["threads"])]}

    results = found(Cassandra(), axes, "cassandra", values, operations=9000)
    assert agreement(results) is said
    sentence = answer(results).sentence
    assert "9,000 inserts take Cassandra's memtable 40.0 s by 2 clients" in sentence
    assert ("11.0 s from 8 on" if most > 10 else "2.00 s by 32, and may take less by more") in sentence
    titles = [figure.title for figure in FIGURES["cassandra"](results)]
    assert titles[answer(results).figure] == "inserts: execution time of 9,000 operations by clients"


def test_at_a_rate_the_answer_is_a_latency() -> None:
    late = {"operations_per_s": 400.0, "read_p99_us": 5000.0, "joining_p99_us": 90_000.0}
    axes: dict[str, tuple[Value, ...]] = {"engine": ("aiodb",), "nodes": (1, 2)}
    grown = found(Grow(), axes, "cassandra", lambda _: late, target_per_s=400)
    assert answer(grown).sentence == (
        "aiodb at 400/s: the 99th percentile is 5.00 ms and 5.00 ms with 1 and 2 nodes, and 90.0 ms and 90.0 ms "
        "while one joins."
    )
    alone = found(Grow(), {**axes, "nodes": (1,)}, "cassandra", lambda _: {"operations_per_s": 9.0}, target_per_s=400)
    assert answer(alone) == Answer("Nothing is measured yet."), "a rate alone is no latency"
    del late["joining_p99_us"]
    alone = found(Grow(), {**axes, "nodes": (1,)}, "cassandra", lambda _: late, target_per_s=400)
    assert answer(alone).sentence == "aiodb at 400/s: the 99th percentile is 5.00 ms with 1 nodes."
    stores: dict[str, tuple[Value, ...]] = {"threads": (32,), "workload": ("workloadc",)}
    asked = found(Ycsb(), stores, "aiodb", lambda _: late, target_per_s=400)
    assert answer(asked).sentence == "99th percentile at 400/s, by workload: C: aiodb 5.00 ms."
    assert FIGURES["ycsb"](asked)[answer(asked).figure].title == "Latency, 99th percentile"


def depths(ratio: float, depth: int = 1024, **more: Any) -> Results:
    axes: dict[str, tuple[Value, ...]] = {
        "index": ("lmdb",), "backend": ("uring",), "threads": (1,), "depth": (1, 64, depth),
    }  # fmt: skip
    rates = {1: 100.0, 64: 1000.0, depth: 1050.0}
    return found(
        QueueDepth(), axes, "aiodb", lambda of: {"gets_per_s": rates[int(of["depth"])], "ratio": ratio}, **more
    )


def test_the_device_must_be_used_up_at_the_depth_of_the_paper() -> None:
    assert agreement(depths(0.99)) is Agreement.AGREES
    assert agreement(depths(0.9)) is Agreement.DIFFERS
    assert agreement(depths(0.99, depth=512)) is Agreement.UNKNOWN
    assert agreement(depths(0.99, repetitions=2)) is Agreement.UNKNOWN
    assert "With 64 gets in flight the store does" in answer(depths(0.99)).sentence


def filled(least: float, died: bool = False, **more: Any) -> Results:
    marks = (f"{DIED} for want of memory",) if died else ()
    values = {"operations_per_s": 500.0, "first_per_s": 1000.0, "least_per_s": least, "memory_times": 2.0}
    given = {"memory_mib": 512, "seconds": 120, "durability": "interval"}
    return found(MemoryFull(), {"threads": (100,)}, "aiodb", lambda of: values, marks=marks, **given, **more)


def test_inserts_must_fall_a_hundredfold_or_the_store_die() -> None:
    assert agreement(filled(5.0)) is Agreement.AGREES
    assert agreement(filled(500.0)) is Agreement.DIFFERS
    assert agreement(filled(500.0, died=True)) is Agreement.AGREES
    assert agreement(filled(5.0, repetitions=1)) is Agreement.UNKNOWN


def test_a_curve_ends_to_grow_where_all_later_points_gain_little() -> None:
    points = measured(depths(1.0).points(), "gets_per_s")
    assert grows_until(points, "gets_per_s").levels["depth"] == 64
    assert grows_until(points[:2], "gets_per_s").levels["depth"] == 64


def test_nothing_measured_is_no_answer() -> None:
    campaign, variant = campaign_of(QueueDepth(), {"index": ("lmdb",), "backend": ("uring",), "threads": (1,),
                                                   "depth": (1,)}, "aiodb")  # fmt: skip
    results = replace(
        depths(1.0), campaign=campaign, variant=variant, planned=tuple(runs(campaign, variant)), outcomes={}
    )
    assert answer(results) == Answer("Nothing is measured yet.")


def test_reports_know_every_kind_of_experiment() -> None:
    assert EXPERIMENTS.keys() == ANSWERS.keys() == FIGURES.keys()
