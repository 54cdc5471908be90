"""Samples of this machine, and of a process of which it is known what it does."""

import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from harness import sampling
from harness.limits import PREFIX
from harness.node_limits import NodeLimits
from harness.node_usage import NodeSample, node_counts, node_samples
from harness.rows import Row
from harness.sampling import HostSample, ProcessSample, Sampler, Samples, disk_of, read_host, read_processes
from harness.saturation import saturation


def test_a_sampler_sees_what_a_process_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "PERIOD_SECONDS", 0.2)
    program = "held = bytearray(b'x' * 80_000_000)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        _wait_for_memory(process.pid, 80_000_000)
        sampler = Sampler(tmp_path, time.monotonic(), disk_of(tmp_path), lambda: [psutil.Process(process.pid)])
        sampler.start()
        until = time.monotonic() + 60
        while psutil.Process(process.pid).cpu_times().user < 2 and time.monotonic() < until:
            time.sleep(0.05)
        sampler.stop()
    finally:
        process.kill()
        process.wait()
    samples = read_processes(tmp_path / "processes.csv")
    assert {sample.pid for sample in samples} == {process.pid}
    assert max(sample.resident_bytes for sample in samples) > 80_000_000
    assert any(sample.cpu_cores > 0 for sample in samples)
    host = read_host(tmp_path / "host.csv")
    assert [sample.t_s for sample in host] == sorted(sample.t_s for sample in host)
    for sample in host:
        parts = sample.cpu_user + sample.cpu_system + sample.cpu_iowait + sample.cpu_steal + sample.cpu_idle
        assert parts == pytest.approx(1, abs=0.02)
        assert sample.memory_used_bytes > 0


def test_a_process_has_no_more_cores_than_there_are_when_a_look_at_it_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "PERIOD_SECONDS", 0.2)
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    looks = itertools.count()

    def late() -> list[psutil.Process]:
        # As on a machine whose cores are all taken.
        time.sleep(0.5 if next(looks) % 3 == 1 else 0.0)
        return [psutil.Process(process.pid)]

    try:
        sampler = Sampler(tmp_path, time.monotonic(), disk_of(tmp_path), late)
        sampler.start()
        time.sleep(5)
        sampler.stop()
    finally:
        process.kill()
        process.wait()
    cores = [sample.cpu_cores for sample in read_processes(tmp_path / "processes.csv")]
    assert len(cores) > 2
    # Once the process may have waited itself, between the clock and its counters.
    assert sum(of > 2 for of in cores) <= 1


def test_a_sampler_does_not_wait_behind_what_it_samples(tmp_path: Path) -> None:
    policies = []

    def look() -> list[psutil.Process]:
        policies.append(os.sched_getscheduler(threading.get_native_id()))
        return []

    sampler = Sampler(tmp_path, time.monotonic(), None, look)
    sampler.start()
    sampler.stop()
    # Only root may put a thread before others; for others the sampler goes on as it is.
    assert set(policies) == {os.SCHED_FIFO if os.geteuid() == 0 else os.SCHED_OTHER}
    assert os.sched_getscheduler(threading.get_native_id()) == os.SCHED_OTHER, "the commands are started from here"


def test_a_sampler_stopped_at_once_leaves_readable_files(tmp_path: Path) -> None:
    sampler = Sampler(tmp_path, time.monotonic(), None, list)
    sampler.start()
    sampler.stop()
    assert len(read_host(tmp_path / "host.csv")) <= 1
    assert read_processes(tmp_path / "processes.csv") == []


def test_a_folder_in_memory_is_on_no_disk() -> None:
    assert disk_of(Path("/proc")) is None


def test_counters_of_a_disk_are_numbers_that_grow(tmp_path: Path) -> None:
    disk = disk_of(tmp_path)
    before = sampling._disk_counters(disk)
    with (tmp_path / "file").open("wb") as file:
        file.write(b"x" * 100_000)
        os.fsync(file.fileno())
    after = sampling._disk_counters(disk)
    assert len(before) == len(after) == 17
    if disk is not None:
        assert after[6] >= before[6] + 100_000 // 512


IDLE = HostSample(1.0, 0.1, 0.1, 0.2, 0.0, 0.6, 1, 1, 0, 0, 0, 0, 0, 0.5, 0.5, 0, 0)


def host(**changes: float) -> list[HostSample]:
    return [HostSample(**{**vars(IDLE), **changes, "t_s": second}) for second in (1.0, 2.0, 3.0)]


def row(ceiling: float | None = None, **values: float) -> Row:
    return Row({"threads": 1}, values, (0.0, 3.0), ceiling)


@pytest.mark.parametrize(
    ("of", "samples", "resource", "evidence"),
    [
        (row(1000.0), host(), "disk", "900/s are 0.90 of the 1,000/s that the device gave"),
        (row(2000.0, cpu_us_per_get=1050.0), host(), "processor", "keep a thread computing 94% of the time"),
        (row(), host(cpu_idle=0.02, cpu_iowait=0.03), "processor", "idle for 5% of the time"),
        (row(), host(disk_busy=0.99, disk_queue=8.0), "disk", "with 8 requests at once; its most is not known"),
        (row(), host(), "none", "cores idle for 80%, the machine's disk busy for 50%"),
        (row(), [], "none", "over between two samples"),
        (row(1000.0), host(cpu_steal=0.2), "disk", "20% of the processor was taken by other guests"),
    ],
)
def test_the_saturated_resource_is_named_with_its_evidence(
    of: Row, samples: list[HostSample], resource: str, evidence: str
) -> None:
    processes = [ProcessSample(2.0, 1, "aiodb", 0.7, 1, 1, 0, 0)]
    verdict = saturation(of, 900.0, Samples(samples, processes, []), NodeLimits())
    assert verdict.resource == resource
    assert evidence in verdict.evidence


def test_samples_outside_the_window_do_not_count() -> None:
    busy_later = [*host(), HostSample(**{**vars(IDLE), "cpu_idle": 0.0, "cpu_iowait": 0.0, "t_s": 60.0})]
    assert saturation(row(), 900.0, Samples(busy_later, [], []), NodeLimits()).resource == "none"


def test_a_limit_of_nodes_is_named_with_how_many_were_at_it() -> None:
    # The third second is after the row's window, and node 4 has not joined.
    did = {1: (480.0, 490.0, 10.0), 2: (510.0, 500.0, 10.0), 3: (200.0, 210.0, 10.0), 4: (0.0, 0.0, 0.0)}
    nodes = [
        NodeSample(2.0 + second, node, 0.0, writes[second], 0.0, 4096 * writes[second])
        for second in range(2)
        for node, writes in did.items()
    ] + [NodeSample(60.0, node, 0.0, writes[2], 0.0, 0.0) for node, writes in did.items()]
    limits = NodeLimits.of({"node_writes_per_s": 500, "node_reads_per_s": 0, "records": 10})
    verdict = saturation(row(), 900.0, Samples(host(cpu_idle=0.02), [], nodes), limits)
    assert verdict.resource == "limits of nodes' disks"
    assert verdict.evidence == "node 2 did 505 of the 500 writes/s that it may; 2 of 3 nodes were at that limit"
    slower = NodeLimits.of({"node_writes_per_s": 700})
    assert saturation(row(), 900.0, Samples(host(), [], nodes), slower).resource == "none"
    by_bytes = saturation(row(), 900.0, Samples(host(), [], nodes), NodeLimits(bytes_per_s=2 << 20))
    assert "of the 2,097,152 bytes/s written" in by_bytes.evidence


@pytest.mark.parametrize(
    "files",
    [
        {
            "blkio.throttle.io_serviced": "254:0 Read 17\n254:0 Write 5\n254:0 Sync 22\n254:16 Read 1\nTotal 23\n",
            "blkio.throttle.io_service_bytes": "254:0 Read 70000\n254:0 Write 4096\n254:16 Read 512\nTotal 74608\n",
        },
        {"io.stat": "254:0 rbytes=70000 wbytes=4096 rios=17 wios=5 dbytes=0 dios=0\n254:16 rbytes=512 rios=1\n"},
        {"io.stat": "254:0 rbytes=70512 wbytes=4096 rios=18 wios=5\n"},
    ],
)
def test_what_nodes_did_is_read_from_their_control_groups(tmp_path: Path, files: dict[str, str]) -> None:
    for name in (f"{PREFIX}{os.getpid()}-node-2", f"{PREFIX}{os.getpid()}-7", f"{PREFIX}1-node-3"):
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text)
    now = node_counts([tmp_path])
    assert now == {2: (18, 5, 70512, 4096)}
    (sample,) = node_samples({2: (8, 5, 512, 0)}, now, t_s=3.0, seconds=2.0)
    assert sample == NodeSample(3.0, 2, 5.0, 0.0, 35000.0, 2048.0)


def _wait_for_memory(pid: int, resident_bytes: int) -> None:
    until = time.monotonic() + 60
    while psutil.Process(pid).memory_info().rss < resident_bytes:
        assert time.monotonic() < until, "the process never took its memory"
        time.sleep(0.05)
