"""Samples of this machine, and of a process of which it is known what it does."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import sampling
from harness.experiments.base import Row
from harness.sampling import HostSample, ProcessSample, Sampler, disk_of, read_host, read_processes
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
    verdict = saturation(of, 900.0, samples, processes)
    assert verdict.resource == resource
    assert evidence in verdict.evidence


def test_samples_outside_the_window_do_not_count() -> None:
    busy_later = [*host(), HostSample(**{**vars(IDLE), "cpu_idle": 0.0, "cpu_iowait": 0.0, "t_s": 60.0})]
    assert saturation(row(), 900.0, busy_later, []).resource == "none"


def _wait_for_memory(pid: int, resident_bytes: int) -> None:
    until = time.monotonic() + 60
    while psutil.Process(pid).memory_info().rss < resident_bytes:
        assert time.monotonic() < until, "the process never took its memory"
        time.sleep(0.05)
