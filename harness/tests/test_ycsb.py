"""What YCSB prints, and when its throughput is flat. `data/` has the output of a real run; its figures are of a machine
busy with other things and mean nothing."""

import base64
import dataclasses
import itertools
import shutil
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from harness.experiments import client
from harness.experiments.ycsb import Ycsb
from harness.fields import Value
from harness.flatness import steady
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place
from harness.stores.registry import STORES
from harness.ycsb_output import (
    Status,
    latencies,
    mean_latencies,
    percentile_over_time,
    rates,
    read_report,
    read_status,
)

DATA = Path(__file__).parent / "data"
PLACE = Place(Path("/scratch"), Path("/kept"), Path("/checkout"), Path("/aiodb"))

# A run of YCSB's own, shortened: opening, three seconds of work, the end, and a slow close.
LOG = (
    (1.0, "DBWrapper: report latency for each error is false and specific error codes to track for latency are: []"),
    (1.1, "2026-11-22 09:25:09:368 0 sec: 0 operations; est completion in 0 second "),
    (2.1, "2026-11-22 09:25:10:368 1 sec: 0 operations; est completion in 106751991167300 days 15 hours "),
    (
        3.1,
        "2026-11-22 09:25:11:368 2 sec: 1000 operations; 1000 current ops/sec; est completion in 1 day [READ: Count=9]",
    ),
    (
        4.1,
        "2026-11-22 09:25:12:368 3 sec: 3000 operations; 2000 current ops/sec; est completion in 1 day [READ: Count=9]",
    ),
    (4.6, "Maximum time elapsed. Requesting stop for the workload."),
    (4.6, "Stop requested for workload. Now Joining!"),
    (
        5.1,
        "2026-11-22 09:25:13:368 4 sec: 4500 operations; 1500 current ops/sec; est completion in 1 day [READ: Count=9]",
    ),
    (
        6.1,
        "2026-11-22 09:25:14:368 5 sec: 4500 operations; 0 current ops/sec; est completion in 1 day [CLEANUP: Count=4]",
    ),
    (7.1, "2026-11-22 09:25:15:368 6 sec: 4500 operations; 0 current ops/sec; est completion in 1 day "),
)


def test_a_real_report_is_read() -> None:
    report = read_report((DATA / "ycsb.out").read_text())
    assert report.sections["OVERALL"]["RunTime(ms)"] == 41475
    assert report.sections["READ"]["99thPercentileLatency(us)"] == 448
    assert report.operations() == 10250 + 10311, "neither CLEANUP nor what is counted from the intended start"
    assert report.returned("OK") == 10250 + 10311
    assert report.failed() == 0


def test_failures_and_missing_records_are_told_apart() -> None:
    report = read_report("[READ], Return=OK, 5\n[READ], Return=NOT_FOUND, 2\n[UPDATE], Return=ERROR, 3\nnothing, 1\n")
    assert (report.failed(), report.returned("NOT_FOUND")) == (3, 2)


def test_a_real_histogram_says_what_the_report_says() -> None:
    path = DATA / "ycsb-READ.hdr"
    whole = latencies(path, 0, (99.0, 100.0))
    assert whole is not None
    assert whole.percentiles_us == ((99.0, 448.0), (100.0, 1196031.0))
    assert whole.mean_us == pytest.approx(1625.65, rel=0.01)
    # The run began at 1795339510; its slowest seconds were the first.
    later = latencies(path, 1795339530, (99.0,))
    assert later is not None
    assert later.percentile_us(99.0) < 448
    assert latencies(path, 1795340000, (99.0,)) is None


def narrowed(line: str) -> str:
    """A line whose histogram says that it holds values up to 4095 only."""
    head, comma, payload = line.rpartition(",")
    if not comma or line.startswith(("#", '"')):
        return line
    envelope = base64.b64decode(payload)
    encoded = bytearray(zlib.decompress(envelope[8:]))
    struct.pack_into(">q", encoded, 24, 4095)
    compressed = zlib.compress(bytes(encoded))
    return f"{head},{base64.b64encode(envelope[:4] + struct.pack('>i', len(compressed)) + compressed).decode()}"


def test_a_histogram_that_counts_more_than_it_says_to_hold_is_read(tmp_path: Path) -> None:
    lines = (DATA / "ycsb-READ.hdr").read_text().splitlines()
    (tmp_path / "narrow.hdr").write_text("\n".join(map(narrowed, lines)) + "\n")
    percents = (50.0, 99.0, 100.0)
    assert latencies(tmp_path / "narrow.hdr", 0, percents) == latencies(DATA / "ycsb-READ.hdr", 0, percents)


def test_a_percentile_over_time_is_of_windows() -> None:
    path = DATA / "ycsb-READ.hdr"
    # The run began at 1795339510.519.
    found = percentile_over_time(path, 99.0, 1795339511.0, 1795339531.0, 5.0)
    assert 3 <= len(found) <= 4
    assert all(5.0 <= later[0] - earlier[0] < 7.0 for earlier, later in itertools.pairwise(found))
    windows = zip([1795339511.0, *(ended for ended, _ in found)], [ended for ended, _ in found], strict=False)
    for (began, ended), (_, late) in zip(windows, found, strict=True):
        alone = latencies(path, began - 0.01, (99.0,), ended - 0.01)
        assert alone is not None
        assert late == alone.percentile_us(99.0)
    assert percentile_over_time(path, 99.0, 1795340000.0, 1795350000.0, 5.0) == []
    assert percentile_over_time(DATA / "none.hdr", 99.0, 0.0, 1.0, 5.0) == []


def test_latencies_from_the_intended_start_are_told_apart() -> None:
    line = (
        "2026-11-22 09:25:{0}:368 {0} sec: {0}00 operations; 100 current ops/sec "
        "[READ: Count=3, Max=9, Min=1, Avg=10.0, 90=1] [UPDATE: Count=1, Max=9, Min=1, Avg=50.0, 90=1] "
        "[Intended-READ: Count=3, Max=9, Min=1, Avg=100.0, 90=1] [Intended-UPDATE: Count=1, Max=9, Min=1, Avg=900.0]"
    )
    status = read_status([(float(second), line.format(second)) for second in (10, 11)])
    assert mean_latencies(status) == [(11.0, 20.0)]
    assert mean_latencies(status, intended=True) == [(11.0, 300.0)]
    assert mean_latencies(read_status(LOG), intended=True) == [], "nothing is taken for what is not said"


def test_a_status_line_says_what_failed_since_the_one_before() -> None:
    line = "2026-11-22 09:25:{0}:368 {0} sec: {0}00 operations; 100 current ops/sec [READ: Count=3, Max=9] {1}"
    kinds = (
        "",
        "[READ-FAILED: Count=2, Max=9, Min=1, Avg=1] [Intended-READ-FAILED: Count=2, Max=9, Min=1, Avg=1]",
        "[READ-FAILED: Count=1, Max=9, Min=1, Avg=1] [UPDATE-FAILED: Count=40, Max=9, Min=1, Avg=1]",
        "[READ-FAILED: Count=0, Max=0, Min=0, Avg=0]",
    )
    log = [(float(second), line.format(second, of)) for second, of in enumerate(kinds, 10)]
    assert [of.failed for of in read_status(log)] == [0, 2, 41, 0]


def test_opening_and_closing_are_no_part_of_the_status() -> None:
    status = read_status(LOG)
    assert [(of.t_s, of.operations) for of in status] == [(2.1, 0), (3.1, 1000), (4.1, 3000), (5.1, 4500)]
    assert status[1].at - status[0].at == pytest.approx(1.0)
    assert [(t_s, round(rate)) for t_s, rate in rates(status)] == [(3.1, 1000), (4.1, 2000), (5.1, 1500)]


def status_of(per_second: Sequence[float]) -> list[Status]:
    """Status lines, one a second, for a throughput by seconds."""
    found = [Status(100.0, 0.0, 0)]
    for rate in per_second:
        found.append(Status(found[-1].at + 1, found[-1].t_s + 1, found[-1].operations + int(rate)))
    return found


def test_a_throughput_that_stays_is_flat_from_its_beginning() -> None:
    measured = steady(status_of([1000] * 20))
    assert measured is not None
    assert (measured.from_s, measured.to_s, measured.rate_per_s, measured.flat) == (100.0, 120.0, 1000.0, True)


def test_warming_up_is_left_out() -> None:
    measured = steady(status_of([200] * 10 + [600] * 10 + [1000] * 10 + [1040] * 10 + [1020] * 5))
    assert measured is not None
    assert (measured.from_s, measured.to_s, measured.flat) == (120.0, 145.0, True)
    assert measured.rate_per_s == pytest.approx((10 * 1000 + 10 * 1040 + 5 * 1020) / 25)


@pytest.mark.parametrize(("second", "flat"), [(950, True), (949, False), (1053, False), (1052, True)])
def test_five_per_cent_is_flat_and_more_is_not(second: float, flat: bool) -> None:
    measured = steady(status_of([1000] * 10 + [second] * 10))
    assert measured is not None
    assert measured.flat == flat


def test_a_throughput_that_never_settles_is_shown_by_its_end_and_not_flat() -> None:
    measured = steady(status_of([1000] * 10 + [800] * 10 + [600] * 10 + [400] * 10))
    assert measured is not None
    assert (measured.from_s, measured.rate_per_s, measured.flat) == (120.0, 500.0, False)


def test_a_throughput_that_collapses_after_a_flat_beginning_is_not_flat() -> None:
    measured = steady(status_of([1000] * 20 + [300] * 5 + [150] * 5 + [600] * 10 + [100] * 10))
    assert measured is not None
    assert (measured.from_s, measured.rate_per_s, measured.flat) == (130.0, 350.0, False)


def test_a_level_that_was_left_does_not_count_and_the_one_that_it_ends_at_does() -> None:
    for first, last in ((1000, 500), (500, 1000)):
        measured = steady(status_of([first] * 30 + [last] * 20))
        assert measured is not None
        assert (measured.from_s, measured.rate_per_s, measured.flat) == (130.0, last, True)


def test_a_throughput_that_sinks_by_a_little_each_window_counts_near_its_end() -> None:
    measured = steady(status_of([rate for window in range(8) for rate in [1000 * 0.96**window] * 10]))
    assert measured is not None
    assert measured.flat
    assert measured.rate_per_s < 1000 * 0.96**4


def test_one_slow_window_between_flat_ones_is_part_of_the_measurement() -> None:
    measured = steady(status_of([1000] * 20 + [400] * 10 + [1000] * 20))
    assert measured is not None
    assert (measured.from_s, measured.rate_per_s, measured.flat) == (100.0, 880.0, True)


def test_a_store_that_stands_still_is_not_flat() -> None:
    measured = steady(status_of([1000] * 10 + [0] * 20))
    assert measured is not None
    assert not measured.flat


@pytest.mark.parametrize("per_second", [[], [1000], [1000] * 9])
def test_less_than_a_window_is_nothing(per_second: list[float]) -> None:
    assert steady(status_of(per_second)) is None


@pytest.mark.parametrize("seconds", [10, 19])
def test_less_than_two_windows_are_not_flat_however_even(seconds: int) -> None:
    measured = steady(status_of([1000] * seconds))
    assert measured is not None
    assert (measured.rate_per_s, measured.flat) == (1000.0, False)


def test_a_status_line_that_is_a_little_late_costs_no_window() -> None:
    status = status_of([1000] * 20)
    early = [*status[:-1], Status(status[-1].at - 0.3, status[-1].t_s, status[-1].operations)]
    measured = steady(early)
    assert measured is not None
    assert measured.flat


def run_of(workloads: tuple[Value, ...], store: str = "aiodb", **parameters: Value) -> Run:
    settings: dict[str, Value] = {"records": 1000, "seconds": 20, "durability": "sync"}
    defaults = {name: field.default for name, field in Ycsb.parameters.items() if field.default is not None}
    return Run(
        store, MappingProxyType({"threads": 4}), MappingProxyType({"workload": workloads}), ("load", "run"),
        MappingProxyType({**defaults, **settings, **parameters}), 1,
    )  # fmt: skip


def test_one_load_serves_all_workloads_up_to_one_that_inserts_or_scans() -> None:
    workloads = ("workloada", "workloadd", "workloadc", "workloade", "workloadf")
    steps = Ycsb().steps(run_of(workloads, "rocksdb"), PLACE)
    assert [(step.name, "table=records0" in step.command) for step in steps] == [
        ("load-0", True), ("workloada", True), ("workloadd", True), ("load-2", False), ("workloadc", False),
        ("load-3", False), ("workloade", False), ("load-4", False), ("workloadf", False),
    ]  # fmt: skip
    assert "table=records3" in steps[6].command
    assert "/checkout/workloads/workloade" in steps[5].command, (
        "Redis has what can be scanned only if told when loading"
    )
    assert [len(step.points) for step in steps] == [0, 1, 1, 0, 1, 0, 1, 0, 1]


def test_only_scans_beside_inserts_end_with_a_number_of_operations() -> None:
    """For keys of the latest records YCSB looks at those that are there."""
    steps = Ycsb().steps(run_of(("workloadd", "workloade", "workloadc"), seconds=120), PLACE)
    counts = {step.name: word for step in steps for word in step.command if word.startswith("operationcount=")}
    assert counts == {
        "workloadd": "operationcount=1000000000",
        "workloade": f"operationcount={125 * 30_000}",
        "workloadc": "operationcount=1000000000",
    }


def test_a_table_that_cannot_be_loaded_loses_the_workloads_that_read_it() -> None:
    steps = Ycsb().steps(run_of(("workloada", "workloadd", "workloadc", "workloade")), PLACE)
    needed = {step.name: [of["workload"] for of in step.needed_by] for step in steps if step.needed_by is not None}
    assert needed == {
        "device": ["workloadc"],
        "load-0": ["workloada", "workloadd"],
        "load-2": ["workloadc"],
        "load-3": ["workloade"],
    }


def test_commands_are_the_launchers() -> None:
    _, load, run = Ycsb().steps(run_of(("workloadc",), target_per_s=500), PLACE)
    assert load.command[:6] == ("/checkout/bin/ycsb", "load", "aiodb", "-s", "-P", "/checkout/workloads/workloadc")
    assert "-target" not in load.command, "only what is measured is offered at a rate"
    assert run.command[-4:] == ("-threads", "4", "-target", "500")
    for given in ("store.directory=/scratch/store", "store.durability=sync", "recordcount=1000", "fieldlength=100",
                  "maxexecutiontime=25", "hdrhistogram.output.path=/kept/workloadc-"):  # fmt: skip
        assert run.command[run.command.index(given) - 1] == "-p"


def test_a_step_becomes_a_row_with_its_percentiles(tmp_path: Path) -> None:
    shutil.copy(DATA / "ycsb-READ.hdr", tmp_path / "workloada-READ.hdr")
    shutil.copy(DATA / "ycsb-READ.hdr", tmp_path / "workloada-Intended-READ.hdr")
    log = [
        (
            5.0 + second,
            f"2026-11-22 09:25:{9 + second:02}:000 {second} sec: {second * 100} operations; 1 current ops/sec",
        )
        for second in range(31)
    ]
    output = (DATA / "ycsb.out").read_text()
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    for target_per_s in (0, 100):
        run = run_of(("workloada",), target_per_s=target_per_s)
        (step,) = Ycsb().steps(run, PLACE)[1:]
        (row,) = Ycsb().rows(run, Finished(step, output, tuple(log), 4.0, 40.0), place)
        assert row.values["operations_per_s"] == pytest.approx(100)
        assert row.values["read_p99_us"] > 0
        assert "update_p99_us" not in row.values
        assert row.window_s == (5.0, 35.0)
        assert row.marks == ()
        assert len(row.series) == 30
    (tmp_path / "workloada-Intended-READ.hdr").unlink()
    (row,) = Ycsb().rows(run, Finished(step, output, tuple(log), 4.0, 40.0), place)
    assert "read_p99_us" not in row.values, "an open loop is not shown by what a closed one measures"
    (step,) = Ycsb().steps(run_of(("workloada",), target_per_s=200), PLACE)[1:]
    (row,) = Ycsb().rows(run, Finished(step, output, tuple(log), 4.0, 40.0), place)
    assert row.marks == ("offered 200/s, did 100/s",)


FIO = 'fio: something else\n{"jobs": [{"read": {"iops": 40000.5}}]}'


def test_reading_alone_is_held_against_the_device(tmp_path: Path) -> None:
    place = Place(tmp_path, tmp_path, tmp_path, tmp_path)
    run = run_of(("workloada", "workloadc"))
    device, _, changing, reading = Ycsb().steps(run, place)
    assert "--numjobs=4" in device.command, "as many in flight as the clients have"
    assert list(Ycsb().rows(run, Finished(device, FIO, (), 0.0, 6.0), place)) == []
    (tmp_path / "device.out").write_text(FIO)
    output = (DATA / "ycsb.out").read_text()
    log = tuple(
        (float(second), f"2026-11-22 09:25:{9 + second:02}:000 {second} sec: {second * 100} operations; 1")
        for second in range(31)
    )
    ceilings = [
        row.ceiling_per_s
        for step in (changing, reading)
        for row in Ycsb().rows(run, Finished(step, output, log, 4.0, 40.0), place)
    ]
    assert ceilings == [None, 40000.5]
    for broken in ("", "{}", '{"jobs": []}'):
        with pytest.raises(BadOutputError, match="fio"):
            Ycsb().rows(run, Finished(device, broken, (), 0.0, 6.0), place)
    names = [step.name for step in Ycsb().steps(run_of(("workloadc",), "lmdb"), place)]
    assert "device" not in names, "it reads the page cache"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "the report has no operations"),
        ("[OVERALL], Throughput(ops/sec), 0.0\n[CLEANUP], Operations, 4", "the report has no operations"),
        ("[READ], Operations, 5\n[READ], Return=OK, 3\n[READ], Return=ERROR, 2", "2 operations failed"),
        ("[READ], Operations, 5\n[READ], Return=OK, 5", "operations for less than 10 s"),
    ],
)
def test_a_run_without_a_result_has_no_number(output: str, reason: str) -> None:
    run = run_of(("workloada",))
    step = Ycsb().steps(run, PLACE)[1]
    with pytest.raises(BadOutputError, match=reason):
        Ycsb().rows(run, Finished(step, output, LOG, 0.0, 9.0), PLACE)


@pytest.mark.parametrize("workload", [of for of in client.WORKLOADS if of not in ("writeonly", "sensor", "workloade")])
@pytest.mark.parametrize("found", [0, 2990])
def test_a_table_that_lacks_keys_has_no_number(workload: str, found: int) -> None:
    run = run_of((workload,))
    *_, step = Ycsb().steps(run, PLACE)
    report = (
        f"[READ], Operations, {found}\n[READ], Return=OK, {found}\n"
        "[READ], Return=NOT_FOUND, 10\n[READ-FAILED], Operations, 10\n"
    )
    log = tuple(
        (float(second), f"2026-11-22 09:25:{9 + second:02}:000 {second} sec: {second * 100} operations; 1")
        for second in range(31)
    )
    with pytest.raises(BadOutputError, match="10 records were not found"):
        Ycsb().rows(run, Finished(step, report, log, 0.0, 40.0), PLACE)


def test_running_without_loading_is_impossible() -> None:
    run = run_of(("workloada",))
    only_run = Run(run.store, run.levels, run.swept, ("run",), run.parameters, 1)
    assert "`phases`" in str(Ycsb().refusal(only_run))
    assert Ycsb().refusal(run) is None


@pytest.mark.parametrize("store", list(STORES))
def test_every_store_says_where_it_is(store: str) -> None:
    run = run_of(("workloada",), store)
    (load,) = [step for step in Ycsb().steps(run, PLACE) if step.name == "load-0"]
    services = Ycsb().services(run, PLACE)
    if not services:
        assert "store.directory=/scratch/store" in load.command
    elif store == "redis":
        assert "always" in services[0].command
        assert "redis.port=16379" in load.command
        assert str(PLACE.scratch) in " ".join(services[0].command)
    elif store == "redis-store":
        assert "always" in services[0].command
        assert {"store-redis", "store.port=16382", "store.durability=sync"} <= set(load.command)
    elif store.startswith("mysql"):
        assert {"DURABILITY=sync", "/scratch/mysql"} <= set(services[0].command)
        assert {"store-mysql", "store.directory=/scratch/store", "store.durability=sync"} <= set(load.command)
    elif store == "aiodb-serve":
        assert {"serve", "/scratch/store", "sync"} <= set(services[0].command)
        assert {"redis", "redis.port=16380"} <= set(load.command)
    else:
        assert {"CLUSTER=/scratch/cluster", "COMMIT_LOG=batch", "DURABILITY=sync"} <= set(services[0].command)
        assert {"cql", "hosts=127.0.7.1", "cassandra.writeconsistencylevel=ONE"} <= set(load.command)
        memtable = "default" if store == "cassandra" else "aiodb"
        assert f"cassandra.table_options=memtable = '{memtable}'" in load.command
        behind = store.removeprefix("cassandra-")
        assert (services[0].command[-1] == behind) == (behind in ("rocksdb", "lmdb", "mysql", "redis"))


def test_a_store_in_ycsbs_process_shares_its_memory_and_a_server_has_its_own() -> None:
    steps = Ycsb().steps(run_of(("workloada",), "lmdb", memory_mib=512, heap_mib=128), PLACE)
    assert all(step.memory_bytes == 512 << 20 for step in steps)
    assert all("JVM_OPTIONS=-Xmx128m -XX:+ExitOnOutOfMemoryError" in step.command for step in steps)
    run = run_of(("workloada",), "redis", memory_mib=512)
    assert [step.memory_bytes for step in Ycsb().steps(run, PLACE)] == [None, None]
    assert [service.memory_bytes for service in Ycsb().services(run, PLACE)] == [512 << 20]
    assert [step.memory_bytes for step in Ycsb().steps(run_of(("workloada",), "lmdb"), PLACE)] == [None, None]
    assert "`memory_mib`" in str(Ycsb().refusal(run_of(("workloada",), "cassandra", memory_mib=512)))


def test_cassandra_has_no_writes_that_are_in_no_log() -> None:
    run = run_of(("workloada",), "cassandra")
    without = dataclasses.replace(run, parameters={**run.parameters, "durability": "none"})
    assert Ycsb().refusal(without) == "`durability`: cassandra has no `none`"
