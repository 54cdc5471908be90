"""The campaign over ways to read MySQL: what is started, what a point costs, and what is said of it."""

import socket
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from clusters import campaign_of
from test_answers import found

from harness import planfile
from harness.experiments.direct_access import DirectAccess, processor_us
from harness.fields import Levels, Value
from harness.needs import packages, targets
from harness.plan import runs
from harness.report.answer import Agreement
from harness.report.answers.registry import answer_of
from harness.report.figures.registry import figures_of
from harness.results import Results
from harness.run import Run
from harness.sampling import ProcessSample
from harness.steps import BadOutputError, Place
from harness.stores import mysql
from harness.stores.registry import STORES

CHECKOUT = Path(__file__).parents[2]
PLACE = Place(Path("/scratch"), Path("/kept"), CHECKOUT, Path("/aiodb"))
AXES: Mapping[str, tuple[Value, ...]] = {"operation": ("get",), "threads": (1, 16)}


def run_of(store: str, **swept: tuple[Value, ...]) -> Run:
    _, variant = campaign_of(DirectAccess(), {**AXES, **swept}, store, records=1000, seconds=20)
    return Run(store, MappingProxyType({}), variant.axes, variant.phases, variant.parameters, 1)


def sample(t_s: float, name: str, cores: float) -> ProcessSample:
    return ProcessSample(t_s, 7, name, cores, 0, 1, 0.0, 0.0)


def test_a_point_costs_what_its_processes_took_while_it_was_measured() -> None:
    samples = [
        *(sample(second, "mariadbd", 0.5) for second in (10.0, 11.0, 12.0, 13.0)),
        *(sample(second, "YCSB", 1.0) for second in (10.0, 11.0, 12.0, 13.0)),
        # Two clients in one second, and a process that nobody asks about.
        sample(12.0, "YCSB", 1.0),
        sample(11.0, "ss", 0.9),
        # Of these a part lies outside of the window.
        sample(9.0, "mariadbd", 2.0),
        sample(18.5, "mariadbd", 2.0),
        # A late one, of a longer time.
        sample(17.0, "mariadbd", 1.0),
        sample(17.0, "YCSB", 0.75),
    ]
    costs = processor_us(samples, (9.0, 18.0), 10_000.0, ["mariadbd"])
    assert costs == {"cpu_us": 175.0, "server_cpu_us": 75.0, "client_cpu_us": 100.0}
    assert processor_us(samples, (9.0, 18.0), 10_000.0, []) == {"cpu_us": 100.0, "client_cpu_us": 100.0}
    with pytest.raises(BadOutputError, match="of redis-server there is no sample"):
        processor_us(samples, (9.0, 18.0), 10_000.0, ["redis-server"])
    with pytest.raises(BadOutputError, match="no sample within"):
        processor_us(samples, (20.0, 30.0), 10_000.0, ["mariadbd"])


def test_each_way_to_read_is_told_to_the_client_and_what_it_needs_to_the_server() -> None:
    for store in ("mysql", "mysql-direct", "mysql-handler", "mysql-procedure"):
        access = STORES[store].access  # type: ignore[attr-defined]
        load, *gets = DirectAccess().steps(run_of(store), PLACE)
        assert [step.name for step in gets] == ["get-1", "get-16"]
        for step in (load, *gets):
            assert step.command[2] == "store-mysql"
            assert f"store.access={access}" in step.command
            assert ("store.direct_port=19998" in step.command) == (store == "mysql-direct")
        (service,) = DirectAccess().services(run_of(store), PLACE)
        assert f"ACCESS={access}" in service.command


def test_puts_overwrite_and_gets_only_read() -> None:
    _, get, put = DirectAccess().steps(run_of("aiodb", operation=("get", "put"), threads=(1,)), PLACE)
    assert {"readproportion=1", "updateproportion=0"} <= set(get.command)
    assert {"readproportion=0", "updateproportion=1"} <= set(put.command)
    only_gets, with_puts = run_of("aiodb"), run_of("aiodb", operation=("get", "put"))
    assert DirectAccess().needed_bytes(with_puts) > DirectAccess().needed_bytes(only_gets)
    assert DirectAccess().expected_seconds(with_puts) > DirectAccess().expected_seconds(only_gets)


def test_what_cannot_be_is_refused() -> None:
    assert "`phases`" in str(DirectAccess().refusal(replace(run_of("mysql"), phases=("run",))))
    of_table = run_of("cassandra")
    none = MappingProxyType({**of_table.parameters, "durability": "none"})
    assert "has no `none`" in str(DirectAccess().refusal(replace(of_table, parameters=none)))
    assert DirectAccess().refusal(of_table) is None


def test_the_night_needs_both_servers() -> None:
    campaign = planfile.read(CHECKOUT / "campaigns" / "direct-access.toml")
    planned = runs(campaign, campaign.variants["night"])
    assert targets(DirectAccess(), planned, PLACE) == ["ycsb"]
    assert packages(DirectAccess(), planned) == ["iproute2", "mariadb-server", "redis-server"]


RATES = {"mysql": 50_000.0, "mysql-direct": 44_000.0, "mysql-procedure": 4_000.0, "redis-store": 60_000.0}


def results(procedure_per_s: float, *stores: str) -> Results:
    def values(point: Levels) -> Mapping[str, float]:
        return {"operations_per_s": 1000.0, "cpu_us": 40.0, "read_p99_us": 900.0}

    of = found(DirectAccess(), AXES, "aiodb", values, records=1000, seconds=20)
    variant = replace(of.variant, stores=stores)
    planned = tuple(runs(of.campaign, variant))
    once = {run.repetition: outcome for run in of.planned for outcome in [of.outcomes[run.id]]}
    outcomes = {}
    for run in planned:
        rate = {**RATES, "mysql-procedure": procedure_per_s, "aiodb": 30_000.0}[run.store]
        server = {} if run.store == "aiodb" else {"server_cpu_us": 1e6 / rate}
        rows = tuple(
            replace(
                row, values={**row.values, "operations_per_s": rate * (1 + int(row.levels["threads"]) / 16), **server}
            )
            for row in once[run.repetition].rows
        )
        outcomes[run.id] = replace(once[run.repetition], run_id=run.id, store=run.store, rows=rows)
    return replace(of, variant=variant, planned=planned, outcomes=outcomes)


ALL = ("mysql", "mysql-direct", "mysql-procedure", "redis-store", "aiodb")


def test_the_answer_has_each_store_where_it_does_most() -> None:
    answer = answer_of(results(4_000.0, *ALL))
    assert answer.sentence == (
        "Gets at most, and processor time for each: Redis as a store 120 K/s with 16 clients (40.0 µs, 16.7 µs of it "
        "the server's), MySQL, SQL 100 K/s with 16 clients (40.0 µs, 20.0 µs of it the server's), MySQL, HandlerSocket "
        "88.0 K/s with 16 clients (40.0 µs, 22.7 µs of it the server's), aiodb 60.0 K/s with 16 clients (40.0 µs) and "
        "MySQL, procedure 8.00 K/s with 16 clients (40.0 µs, 250 µs of it the server's)."
    )


def test_the_blog_is_held_against_the_procedure() -> None:
    agrees, differs = (answer_of(results(rate, *ALL)).finding for rate in (4_000.0, 30_000.0))
    assert agrees is not None
    assert differs is not None
    assert agrees.agreement is Agreement.AGREES
    assert "with 16 clients HandlerSocket does 11.0 times the gets of a stored procedure" in agrees.why
    assert differs.agreement is Agreement.DIFFERS
    assert differs.why.endswith("and 0.73 times those of Redis")
    alone = answer_of(results(4_000.0, "mysql", "aiodb")).finding
    assert alone is not None
    assert alone.agreement is Agreement.UNKNOWN


def test_figures_are_of_what_was_measured() -> None:
    rate, cost, server, late, *percentiles = figures_of(results(4_000.0, *ALL))
    assert [len(figure.series) for figure in (rate, cost, server, late)] == [5, 5, 4, 5]  # type: ignore[union-attr]
    assert percentiles


def test_a_server_is_ready_when_it_greets() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer(*packets: bytes) -> None:
            for packet in packets:
                connection, _ = listening.accept()
                with connection:
                    connection.sendall(packet)

        answering = threading.Thread(target=answer, args=(b"J\0\0\0\x0a10.11", b"", b"\x10\0\0\0\xffToo many"))
        answering.start()
        assert [mysql._greets(port) for _ in range(3)] == [True, False, False]
        answering.join()
    assert not mysql._greets(port)


def test_the_script_wants_three_arguments() -> None:
    refused = subprocess.run([CHECKOUT / "harness" / "keep-mysql.sh"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "DIRECTORY PORT DIRECT_PORT" in refused.stderr
