"""The campaign over `aiodb serve` and redis-server: its rows, what it asks of a machine, and what is said of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import cast

import pytest
from clusters import campaign_of
from test_answers import found
from test_bench import PLACE, run_of

from harness import planfile
from harness.agreement import unpaired
from harness.documents import tables
from harness.documents.marks import Sources
from harness.errors import HarnessError
from harness.experiments.serve import BESIDE_REDIS, IDLE, LARGE, WORKLOADS, Serve
from harness.fields import Levels
from harness.report.answers.registry import answer_of
from harness.report.figures.registry import figures_of
from harness.report.verdict import verdict_of
from harness.results import Results
from harness.rows import Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Step

CHECKOUT = Path(__file__).parents[2]
# Standard error of scripts/bench-serve.sh, with the seconds of its lines.
RECORDED = (Path(__file__).parent / "data" / "serve.log").read_text(encoding="utf-8")
MEASURED = ("get", IDLE, "get_large_64")


def serve_run(*workloads: str, repetition: int = 2) -> Run:
    return replace(run_of(Serve(), {"workload": workloads}), repetition=repetition)


def log_of(text: str) -> tuple[tuple[float, str], ...]:
    return tuple((float(line.partition("\t")[0]), line.partition("\t")[2]) for line in text.splitlines())


def rows_of(text: str, *workloads: str) -> dict[str, Row]:
    run = serve_run(*workloads)
    finished = Finished(Step("bench", ("env",), 10, tuple(run.points())), "", log_of(text), 0.5, 13.0)
    return {str(row.levels["workload"]): row for row in Serve().rows(run, finished, PLACE)}


def test_a_workload_has_both_servers_values_and_the_time_of_both() -> None:
    row = rows_of(RECORDED, *MEASURED)["get"]
    assert row.values == {
        "requests_per_s": 60000.0, "other_per_s": 80000.0, "ratio": 0.75, "p50_us": 700.0, "p99_us": 1600.0,
        "other_p50_us": 300.0, "other_p99_us": 700.0, "cpu_us": 0.0, "other_cpu_us": 9.5,
    }  # fmt: skip
    assert row.window_s == (1.5, 3.0), "filling the servers is no part of it"
    assert row.ceiling_per_s is None


def test_idle_connections_have_no_other_beside_them() -> None:
    row = rows_of(RECORDED, *MEASURED)[IDLE]
    assert row.values["p99_to_p50"] == 2.5
    assert row.values["connection_bytes"] == 20509.0
    assert "ratio" not in row.values
    assert row.window_s == (5.0, 6.0)


def test_data_beyond_memory_are_held_against_the_device() -> None:
    row = rows_of(RECORDED, *MEASURED)["get_large_64"]
    assert (row.values["ratio"], row.values["other_per_s"], row.ceiling_per_s) == (0.4, 60000.0, 60000.0)
    assert "other_p99_us" not in row.values
    assert row.window_s == (8.0, 9.0), "the device is asked later"


def test_a_workload_of_which_a_server_says_nothing_has_no_row() -> None:
    without = "".join(line for line in RECORDED.splitlines(keepends=True) if '"redis"' not in line)
    assert rows_of(without, *MEASURED).keys() == {IDLE, "get_large_64"}
    assert rows_of(RECORDED, "get", "set").keys() == {"get"}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (RECORDED, "1.0\tbench-serve: the servers are ready\n", "printed no result"),
        ('"cpu_us":9.50}', '"cpu_us":', "is no JSON"),
        ('"per_second":80000.0', '"per_second":0.0', "nothing was measured"),
        ('"per_second":60000.0,"p50_us"', '"per_second":null,"p50_us"', "per_second is None"),
        ('"connection_bytes":20509', '"connection_bytes":"many"', "connection_bytes is 'many'"),
    ],
)
def test_output_that_is_no_result_is_refused(old: str, new: str, reason: str) -> None:
    assert old in RECORDED
    with pytest.raises(BadOutputError, match=reason):
        rows_of(RECORDED.replace(old, new), *MEASURED)


def test_a_run_is_one_round_of_the_script_in_the_campaigns_own_folder() -> None:
    (step,) = Serve().steps(serve_run("get", "set"), PLACE)
    assert step.command == (
        "env", "AIODB=aiodb", "checkout/scripts/bench-serve.sh", "--rounds=1", "--first-round=2",
        "--workloads=get,set", "--scale=1", "--dir=scratch", "--out=kept/server.json",
    )  # fmt: skip
    text = (CHECKOUT / "scripts" / "bench-serve.sh").read_text(encoding="utf-8")
    assert f"workloads={','.join(WORKLOADS)}\n" in text, "the script and the campaign know the same workloads"
    for option in step.command[3:]:
        assert f"{option.partition('=')[0]}=*)" in text


def test_what_a_machine_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.experiments.serve.memory_limits_missing", lambda: "no controller")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    assert Serve().obstacle(serve_run("get", "set_durable")) is None
    assert "6000 open files" in str(Serve().obstacle(serve_run("get", IDLE)))
    assert "only root" in str(Serve().obstacle(serve_run("get_large_300")))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert Serve().obstacle(serve_run(IDLE)) is None, "root may raise the limit"
    assert Serve().obstacle(serve_run("get_large_300")) == "no controller"
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert "a core each" in str(Serve().obstacle(serve_run("get")))


def test_fewer_requests_take_less_time_and_room() -> None:
    whole = serve_run(*WORKLOADS)
    tenth = replace(whole, parameters=MappingProxyType({"scale": 10}))
    for experiment_says in (Serve().expected_seconds, Serve().needed_bytes):
        assert experiment_says(tenth) < experiment_says(whole)
        assert experiment_says(serve_run("get")) < experiment_says(whole)
    assert "fio" in Serve().packages(whole)
    assert "fio" not in Serve().packages(serve_run("get"))


def values_of(point: Levels) -> Mapping[str, float]:
    """Durable writes faster than Redis, all others slower."""
    workload = str(point["workload"])
    values = {"requests_per_s": 60000.0, "p50_us": 700.0, "p99_us": 1600.0, "cpu_us": 16.0}
    if workload == IDLE:
        return {**values, "p99_to_p50": 2.5, "connection_bytes": 20509.0}
    ratio = 1.5 if workload == "set_durable" else 0.75
    values |= {"ratio": ratio, "other_per_s": 60000.0 / ratio}
    return values if workload in LARGE else {**values, "other_p99_us": 700.0, "other_cpu_us": 9.5}


def results() -> Results:
    """All workloads, three times, those with little memory beside what the device gave."""
    of = found(Serve(), {"workload": WORKLOADS}, "aiodb", values_of)
    outcomes = {}
    for name, outcome in of.outcomes.items():
        rows = [
            replace(row, ceiling_per_s=80000.0 if row.levels["workload"] in LARGE else None) for row in outcome.rows
        ]
        outcomes[name] = replace(outcome, rows=tuple(rows))
    return replace(of, outcomes=outcomes)


def test_the_answer_tells_the_faster_workloads_from_the_slower_ones() -> None:
    answer = answer_of(results())
    assert answer.sentence.startswith(
        "At least as fast as redis-server are durable set (1.50); not as fast are get (0.75), set (0.75), "
    )
    assert (
        "of what the device gives, gets reach 0.75 with 64 connections and 0.75 with 300 connections" in answer.sentence
    )
    assert "; beside idle connections, of which each takes 20.5 KB, the 99th percentile of gets " in answer.sentence
    assert answer.sentence.endswith(" is 2.50 times their median.")
    assert "; a request takes 1.68 times the processor time of redis-server; " in answer.sentence
    assert [shown.metric for shown in answer.shown] == [*["ratio"] * 9, "p99_to_p50"]


def test_what_was_not_measured_is_not_in_the_answer() -> None:
    alone = found(Serve(), {"workload": ("set_durable", "get")}, "aiodb", lambda of: None)
    assert answer_of(alone).sentence == "Nothing is measured yet."
    assert list(figures_of(alone)) == []
    slow = found(Serve(), {"workload": ("get", "set_durable")}, "aiodb", lambda of: {**values_of(of), "ratio": 0.5})
    assert answer_of(slow).sentence == (
        "Not as fast as redis-server are get (0.50) and durable set (0.50); a request takes 1.68 times the processor "
        "time of redis-server."
    )


def test_a_point_needs_only_the_main_values_that_it_can_have() -> None:
    assert verdict_of(results())[1] == "good"
    assert list(unpaired(results(), results())) == []
    without = found(
        Serve(), {"workload": WORKLOADS}, "aiodb", lambda of: {"requests_per_s": 1.0, **_all_but_ratio(values_of(of))}
    )
    assert f"{len(WORKLOADS) - 1} of {len(WORKLOADS)}" in verdict_of(without)[0]
    assert len(list(unpaired(results(), without))) == len(WORKLOADS) - 1


def _all_but_ratio(values: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name != "ratio"}


def test_figures_have_a_mark_of_each_workload_that_was_measured() -> None:
    ratios, rates, late, costs = figures_of(results())
    assert [len(series.marks) for series in ratios.series] == [len(BESIDE_REDIS), len(LARGE)]  # type: ignore[union-attr]
    assert len(ratios.categories) == len(WORKLOADS) - 1  # type: ignore[union-attr]
    # The device has a dash of its own over each workload.
    for figure, others in ((rates, 1 + len(LARGE)), (late, 1), (costs, 1)):
        ours, *beside = figure.series  # type: ignore[union-attr]
        assert len(ours.marks) == len(WORKLOADS)
        assert len(beside) == others


def test_the_table_has_a_row_of_each_workload() -> None:
    published = {"serve": SimpleNamespace(results=results())}
    text = tables.table("served", cast(Sources, SimpleNamespace(published=published, checkout=CHECKOUT)), CHECKOUT)
    assert len(text.splitlines()) == 2 + len(WORKLOADS)
    assert (
        "| get | 60,000 (60,000-60,000) | 80,000 (80,000-80,000) | 0.75 (0.75 to 0.75) | 1.6, 0.7 | 16.0, 9.5 |" in text
    )
    assert "| get, 5,000 idle | 60,000 (60,000-60,000) |  |  | 1.6 | 16.0 |" in text
    with pytest.raises(HarnessError, match="nothing is published of 'serve'"):
        tables.table("served", cast(Sources, SimpleNamespace(published={}, checkout=CHECKOUT)), CHECKOUT)


def test_the_project_measures_every_workload() -> None:
    campaign = planfile.read(CHECKOUT / "campaigns" / "serve.toml")
    for variant in campaign.variants.values():
        assert variant.axes["workload"] == WORKLOADS
    assert campaign_of(Serve(), {"workload": WORKLOADS}, "aiodb")[1].parameters == {"scale": 1}
