"""The campaign over replicas on different engines: what is started, whose work is counted, and what is said of it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import psutil
import pytest
from clusters import campaign_of
from test_answers import found

from harness import planfile
from harness.experiments.mixed_replicas import BEHIND, MixedReplicas, processor_us, replica_values
from harness.fields import Levels, Value
from harness.needs import packages, targets
from harness.plan import runs
from harness.replica_counts import ReplicaCounts, counts_between
from harness.report.answer import Agreement
from harness.report.answers.registry import answer_of
from harness.report.figures.registry import figures_of
from harness.results import Results
from harness.rows import Row
from harness.run import Run
from harness.sampling import HostSample, ProcessSample, role
from harness.steps import BadOutputError, Place

CHECKOUT = Path(__file__).parents[2]
PLACE = Place(Path("/scratch"), Path("/kept"), CHECKOUT, Path("/aiodb"))
AXES: Mapping[str, tuple[Value, ...]] = {"mix": ("half", "write-heavy", "read-heavy"), "level": ("ONE",)}
PARAMETERS: Mapping[str, Value] = {"records": 1000, "seconds": 20, "warm_up_seconds": 20}


def run_of(store: str, repetition: int = 1, levels: tuple[str, ...] = ("ONE",), **parameters: Value) -> Run:
    axes = {**AXES, "level": levels}
    _, variant = campaign_of(MixedReplicas(), axes, store, **{**PARAMETERS, **parameters})
    return Run(store, MappingProxyType({}), variant.axes, variant.phases, variant.parameters, repetition)


def words(store: str, cache_mib: int = 0) -> list[str]:
    nodes, _ = MixedReplicas().services(run_of(store, cache_mib=cache_mib), PLACE)
    return list(nodes.command)


def test_each_node_of_mixed_engines_has_its_own_and_tells_what_reads_cost() -> None:
    told = words("mixed", cache_mib=64)
    assert told[-3:] == ["aiodb", "mysql", "redis"]
    assert "PARAMETERS=index: lmdb\ncache: 64MiB" in told
    assert {"SERVER_MEMORY_MB=64", "JVM_OPTIONS=-Daiodb.read.cost.weight=10"} <= set(told)
    assert "dynamic_snitch_badness_threshold: 0.1" in "\n".join(told)
    alone = words("mysql")
    assert alone[-3:] == ["mysql", "mysql", "mysql"]
    assert {"PARAMETERS=index: lmdb", "JVM_OPTIONS="} <= set(alone)
    assert "dynamic_snitch_badness_threshold" not in "\n".join(alone)


def test_what_replicas_do_is_counted_of_the_same_cluster() -> None:
    nodes, counting = MixedReplicas().services(run_of("mixed"), PLACE)
    assert counting.command[-2:] == ("replicas", "mixed")
    for name in ("CLUSTER", "NETWORK"):
        (of_nodes,) = [word for word in nodes.command if word.startswith(f"{name}=")]
        assert of_nodes in counting.command


def test_every_point_reads_its_part_of_one_table_and_comes_first_once() -> None:
    load, warm_up, *points = MixedReplicas().steps(run_of("mixed", target_per_s=300), PLACE)
    assert "cassandra.writeconsistencylevel=ALL" in load.command
    assert "-target" not in warm_up.command
    assert [step.name for step in points] == ["half-ONE", "write-heavy-ONE", "read-heavy-ONE"]
    shares = [
        word for step in points for word in step.command if word.endswith(("readproportion=0.05", "proportion=0.95"))
    ]
    assert len(shares) == 3
    assert {"readproportion=0.95", "updateproportion=0.05"} <= set(points[2].command)
    for step in (load, warm_up, *points):
        assert "cassandra.table_options=memtable = 'aiodb' AND speculative_retry = 'NONE'" in step.command
    for step in points:
        assert step.command[-2:] == ("-target", "300")
    first = [MixedReplicas().steps(run_of("mixed", number), PLACE)[2].name for number in (1, 2, 3)]
    assert sorted(first) == sorted(step.name for step in points)


def test_what_cannot_be_is_refused() -> None:
    assert "`phases`" in str(MixedReplicas().refusal(replace(run_of("mixed"), phases=("run",))))
    assert "does not start in less" in str(MixedReplicas().refusal(run_of("mixed", node_memory_mib=500)))
    assert MixedReplicas().refusal(run_of("mixed", levels=("THREE", "QUORUM"))) is None


def test_the_night_needs_both_servers_and_the_plug_in() -> None:
    campaign = planfile.read(CHECKOUT / "campaigns" / "mixed-replicas.toml")
    planned = runs(campaign, campaign.variants["night"])
    assert targets(MixedReplicas(), planned, PLACE) == ["java"]
    assert packages(MixedReplicas(), planned) == ["iproute2", "mariadb-server", "redis-server"]
    names = {path.name for run in planned for path in MixedReplicas().programs(run, PLACE)}
    assert {"store-mysql-0.1.0-cassandra.jar", "store-redis-0.1.0-cassandra.jar", "Replicas.java"} <= names
    assert not any(name.startswith("store-aiodb") for name in names)


def test_a_server_is_named_after_the_node_that_has_it() -> None:
    folder = "/runs/mixed_r1/cluster/node3/redis/data"
    assert role("redis-server", ["redis-server 127.0.7.3:6379"], folder) == "redis-server of node 3"
    assert role("java", ["java", "-Daiodb.node=/runs/cluster/node2"], "/checkout") == "node 2"
    assert role("java", ["java", "-Daiodb.node=/runs/cluster"], "/checkout") == "java", "a tool that asks a node"
    assert role("mariadbd", ["mariadbd"], "/runs/mysql_r1/mysql/node1/mysql/data") == "mariadbd", "of no node"
    assert isinstance(psutil.Process().cwd(), str)


def sample(t_s: float, name: str, cores: float) -> ProcessSample:
    return ProcessSample(t_s, 7, name, cores, 0, 1, 0.0, 0.0)


def test_a_nodes_processor_time_has_its_server_in_it() -> None:
    samples = [
        sample(second, name, cores)
        for second in (10.0, 11.0, 12.0)
        for name, cores in (
            ("node 1", 0.2),
            ("node 2", 0.1),
            ("mariadbd of node 2", 0.3),
            ("node 3", 0.1),
            ("YCSB", 1.0),
        )
    ]
    costs = processor_us(samples, (10.0, 12.0), 1000.0)
    assert costs == pytest.approx({"cpu_us": 700, "node_1_cpu_us": 200, "node_2_cpu_us": 400, "node_3_cpu_us": 100})
    with pytest.raises(BadOutputError, match="of node 3 there is no sample"):
        processor_us([of for of in samples if of.name != "node 3"], (10.0, 12.0), 1000.0)


COUNTS = """\
at_ms,node,reads,read_us,writes,write_us
9000,1,0,0,0,0
10000,1,100,1000,50,5000
10001,2,10,900,50,20000
10002,3,0,0,50,1000
12000,1,290,2900,80,8000
12001,2,20,1800,80,35000
12002,3,0,0,80,1600
13000,1,999,9999,99,9999
13001,2,3
"""


def test_counts_are_of_the_time_that_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "replicas.out"
    path.write_text(COUNTS)
    counted = counts_between(path, 9.5, 12.5)
    assert counted[1] == ReplicaCounts(190, 1900, 30, 3000)
    assert counts_between(path, 11.9, 12.5) == {}
    assert replica_values(path, 9.5, 12.5) == {
        "reads_1": 95.0, "node_1_read_us": 10.0, "node_1_write_us": 100.0,
        "reads_2": 5.0, "node_2_read_us": 90.0, "node_2_write_us": 500.0,
        "reads_3": 0.0, "node_3_write_us": 20.0,
    }  # fmt: skip
    with pytest.raises(BadOutputError, match="what node 1 did as a replica was not counted"):
        replica_values(path, 20.0, 30.0)


def test_the_program_prints_what_is_read() -> None:
    text = (CHECKOUT / "java" / "cluster" / "Replicas.java").read_text(encoding="utf-8")
    (head,) = re.findall(r'HEAD = "(.*)"', text)
    assert head == COUNTS.partition("\n")[0]


def test_nodes_without_idle_processor_are_marked() -> None:
    row = Row({}, {}, (10.0, 20.0))
    busy, idle = (HostSample(15.0, *(0.0,) * 4, left, *(0.0,) * 11) for left in (0.1, 0.5))
    assert MixedReplicas().marks(run_of("mixed"), row, [busy]) == ("shared CPU: shape only",)
    assert MixedReplicas().marks(run_of("mixed"), row, [idle]) == ()


READS_US = {"aiodb": 900.0, "mysql": 1500.0, "redis": 1000.0}


def results(mixed_us: float, *stores: str, target_per_s: int = 500) -> Results:
    """All at the same rate; a closed loop does more the sooner a read ends."""
    values = {"operations_per_s": 500.0, "cpu_us": 800.0, "read_mean_us": 1.0, "read_p99_us": 5000.0}
    values |= {f"reads_{node}": share for node, share in ((1, 96.0), (2, 1.0), (3, 3.0))}
    values |= {f"node_{node}_write_us": of for node, of in ((1, 20.0), (2, 300.0), (3, 90.0))}

    def of(_: Levels) -> Mapping[str, float]:
        return values

    once = found(MixedReplicas(), AXES, "mixed", of, **{**PARAMETERS, "target_per_s": target_per_s})
    variant = replace(once.variant, stores=stores)
    planned = tuple(runs(once.campaign, variant))
    by_repetition = {run.repetition: once.outcomes[run.id] for run in once.planned}
    outcomes = {}
    for run in planned:
        read_us = {**READS_US, "mixed": mixed_us}[run.store]
        rate = 500.0 if target_per_s else 1e6 / read_us
        more = {"read_mean_us": read_us, "operations_per_s": rate}
        outcome = by_repetition[run.repetition]
        rows = tuple(replace(row, values={**row.values, **more}) for row in outcome.rows)
        outcomes[run.id] = replace(outcome, run_id=run.id, store=run.store, rows=rows)
    return replace(once, variant=variant, planned=planned, outcomes=outcomes)


ALL = ("aiodb", "mysql", "redis", "mixed")


def test_the_answer_has_who_serves_reads_and_what_writes_cost() -> None:
    sentence = answer_of(results(950.0, *ALL)).sentence
    assert sentence.startswith(
        "Mean read, and processor time for an operation: half reads at ONE: aiodb 0.90 ms (800 µs), "
    )
    assert sentence.endswith(
        "Of mixed engines' 19 reads for each write, reads are served by aiodb 96 %, MySQL, SQL 1 % and Redis 3 %, and "
        "a write takes aiodb 20.0 µs, MySQL, SQL 300 µs and Redis 90.0 µs within its node."
    )


@pytest.mark.parametrize("target_per_s", [0, 500])
def test_mixed_engines_are_held_against_the_best_alone(target_per_s: int) -> None:
    agrees, differs = (answer_of(results(us, *ALL, target_per_s=target_per_s)).finding for us in (1000.0, 1200.0))
    assert agrees is not None
    assert differs is not None
    assert (agrees.agreement, differs.agreement) == (Agreement.AGREES, Agreement.DIFFERS)
    ratio = "a read takes 1.33 times" if target_per_s else "throughput is 0.75 times"
    assert f"{ratio} that of aiodb alone" in differs.why
    alone = answer_of(results(1000.0, "aiodb", "redis", target_per_s=target_per_s)).finding
    assert alone is not None
    assert alone.agreement is Agreement.UNKNOWN


def test_figures_say_of_mixed_engines_who_does_what() -> None:
    drawn = figures_of(results(950.0, *ALL))
    titles = [figure.title for figure in drawn]
    assert titles[2] == "Reads: mean latency"
    (served,) = [figure for figure in drawn if figure.title == "Mixed engines: who serves reads"]
    assert [series.name for series in served.series] == [  # type: ignore[union-attr]
        "node 1, aiodb", "node 2, MySQL, SQL", "node 3, Redis",
    ]  # fmt: skip
    assert len(BEHIND["mixed"]) == 3
    assert not any("who serves" in figure.title for figure in figures_of(results(950.0, "aiodb", "redis")))
