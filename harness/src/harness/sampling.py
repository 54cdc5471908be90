"""Once a second: what every process of a run and the whole machine use. What `sar` is to those who measure by hand."""

import contextlib
import csv
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import psutil

from harness.errors import HarnessError
from harness.heap import heap_bytes
from harness.network_usage import Traffic, TrafficCounter
from harness.node_usage import Counts, NodeSample, node_counts, node_samples, read_nodes

PERIOD_SECONDS = 1.0
# By these words of its command line a virtual machine is known. Tools that ask a node name the cluster's folder.
_NODE = re.compile(r"-Daiodb\.node=.*/node(\d+)")
CLIENT_JAR = "aiodb-ycsb-0.1.0.jar"
# The folder that a node's database server works in, and how its name goes on.
_NODE_SERVER = re.compile(r"/cluster/node(\d+)/[a-z]+/data$")
OF_NODE = " of node "
_SECTOR_BYTES = 512
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class HostSample:
    """The machine over one period that ends at `t_s`, seconds since the run began."""

    t_s: float
    # Parts of all cores' time.
    cpu_user: float
    cpu_system: float
    cpu_iowait: float
    cpu_steal: float
    cpu_idle: float
    memory_used_bytes: float
    memory_available_bytes: float
    disk_reads_per_s: float
    disk_read_bytes_per_s: float
    disk_writes_per_s: float
    disk_written_bytes_per_s: float
    disk_flushes_per_s: float
    # The part of the time in which the disk had something to do, and how much on average.
    disk_busy: float
    disk_queue: float
    network_bytes_per_s: float
    loopback_bytes_per_s: float
    # Cores that computed for processes of others: neither the harness nor anything that it started, nor the kernel.
    cpu_others_cores: float = 0.0


@dataclass(frozen=True)
class ProcessSample:
    """One process over the same period. A process that ends within a period is missing from it."""

    t_s: float
    pid: int
    name: str
    # 1 is one core.
    cpu_cores: float
    resident_bytes: int
    threads: int
    read_bytes_per_s: float
    written_bytes_per_s: float
    # Of a Java virtual machine, otherwise 0.
    heap_bytes: int = 0
    # Payload over TCP, also to processes of the same machine; of connections that end the last moment is missing.
    received_bytes_per_s: float = 0.0
    sent_bytes_per_s: float = 0.0


@dataclass(frozen=True)
class _Usage:
    """What one process has used since it began, and holds now."""

    name: str
    # When its processor time was read: on a machine whose cores are all taken that may be long after the sample began.
    at: float
    cpu_s: float
    resident_bytes: int
    threads: int
    read_bytes: int
    written_bytes: int
    heap_bytes: int
    traffic: Traffic


_NOTHING = _Usage("", 0.0, 0.0, 0, 0, 0, 0, 0, Traffic())


@dataclass(frozen=True)
class _Counters:
    at: float
    # When all of it had been read.
    read_at: float
    cpu: dict[str, float]
    # Processor time of the harness and of all that it ever started.
    own_cpu_s: float
    # Of each of the kernel's own threads.
    kernel_cpu_s: dict[int, float]
    disk: list[int]
    network: dict[str, int]
    processes: dict[tuple[int, float], _Usage]
    nodes: dict[int, Counts]


@dataclass(frozen=True)
class Samples:
    """What was sampled during one run."""

    host: list[HostSample]
    processes: list[ProcessSample]
    # Of nodes whose disk is limited.
    nodes: list[NodeSample]


class Sampler:
    """Writes `host.csv`, `processes.csv` and `nodes.csv` into a folder from `start` to `stop`."""

    def __init__(
        self, folder: Path, began: float, disk: str | None, processes: Callable[[], list[psutil.Process]]
    ) -> None:
        self._folder = folder
        self._began = began
        self._disk = disk
        self._list_processes = processes
        self._traffic = TrafficCounter()
        self._stopping = threading.Event()
        # Why there are no further samples; None as long as there are.
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def start(self) -> None:
        """Begins to sample, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Takes a last sample and closes the files."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        _hurry()
        try:
            self._sample()
        except Exception as error:
            self.failure = error

    def _sample(self) -> None:
        # By lines: a harness that is killed leaves whole samples.
        with (
            (self._folder / "host.csv").open("w", buffering=1, newline="") as host_file,
            (self._folder / "processes.csv").open("w", buffering=1, newline="") as process_file,
            (self._folder / "nodes.csv").open("w", buffering=1, newline="") as node_file,
        ):
            host = csv.DictWriter(host_file, [of.name for of in fields(HostSample)])
            process = csv.DictWriter(process_file, [of.name for of in fields(ProcessSample)])
            node = csv.DictWriter(node_file, [of.name for of in fields(NodeSample)])
            for writer in (host, process, node):
                writer.writeheader()
            before = self._counters()
            due = before.at
            stopping = False
            while not stopping:
                # Due times are fixed, so that a late sample does not make all later ones late.
                due += PERIOD_SECONDS
                stopping = self._stopping.wait(max(0.0, due - time.monotonic()))
                now = self._counters()
                # Right behind a late one there would be next to no time between two looks at a process.
                if now.at - before.read_at < PERIOD_SECONDS / 10:
                    continue
                host.writerow(asdict(_host_sample(before, now, self._began)))
                process.writerows(asdict(sample) for sample in _process_samples(before, now, self._began))
                nodes = node_samples(before.nodes, now.nodes, round(now.at - self._began, 3), now.at - before.at)
                node.writerows(asdict(sample) for sample in nodes)
                before = now

    def _counters(self) -> _Counters:
        at = time.monotonic()
        cpu = psutil.cpu_times()._asdict()
        network = {name: of.bytes_sent + of.bytes_recv for name, of in psutil.net_io_counters(pernic=True).items()}
        processes = {}
        own_cpu_s = _with_children(psutil.Process().cpu_times())
        listed = self._list_processes()
        traffic = self._traffic.count([process.pid for process in listed])
        for process in listed:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied), process.oneshot():
                read_at = time.monotonic()
                times = process.cpu_times()
                own_cpu_s += _with_children(times)
                io = process.io_counters()
                processes[process.pid, process.create_time()] = _Usage(
                    role(process.name(), process.cmdline(), process.cwd()),
                    read_at,
                    times.user + times.system,
                    process.memory_info().rss,
                    process.num_threads(),
                    io.read_bytes,
                    io.write_bytes,
                    heap_bytes(process.pid),
                    traffic.get(process.pid, Traffic()),
                )
        disk = _disk_counters(self._disk)
        kernel_cpu_s, nodes = _kernel_cpu_s(), node_counts()
        return _Counters(at, time.monotonic(), cpu, own_cpu_s, kernel_cpu_s, disk, network, processes, nodes)


def _hurry() -> None:
    """Puts this thread, and what it starts, before what is measured: a server and its clients that hand the cores to
    each other keep all others waiting for seconds, and counters that are read so late say nothing of one time."""
    # Only root may.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(os.sched_get_priority_min(os.SCHED_FIFO)))


def _with_children(times: Any) -> float:
    """Processor time of a process and of its children that have ended; those that run are counted for themselves."""
    return float(times.user + times.system + times.children_user + times.children_system)


def _host_sample(before: _Counters, now: _Counters, began: float) -> HostSample:
    seconds = now.at - before.at
    cpu = {name: now.cpu[name] - before.cpu[name] for name in now.cpu}
    # Time of guests is counted in `user` already. Interrupts, and the network's work that follows them, are of no
    # process: a server that is asked over the network causes much of it.
    used = sum(cpu[name] for name in ("user", "nice", "system"))
    # The kernel's own threads work for those that are measured: they write back what a store has left in page cache.
    kernel = sum(of - before.kernel_cpu_s[pid] for pid, of in now.kernel_cpu_s.items() if pid in before.kernel_cpu_s)
    total = sum(of for name, of in cpu.items() if name not in ("guest", "guest_nice")) or 1.0
    disk = [(b - a) / seconds for a, b in zip(before.disk, now.disk, strict=True)]
    network = {name: (now.network[name] - before.network.get(name, 0)) / seconds for name in now.network}
    memory = psutil.virtual_memory()
    return HostSample(
        t_s=round(now.at - began, 3),
        cpu_user=(cpu["user"] + cpu["nice"]) / total,
        cpu_system=(cpu["system"] + cpu["irq"] + cpu["softirq"]) / total,
        cpu_iowait=cpu["iowait"] / total,
        cpu_steal=cpu["steal"] / total,
        cpu_idle=cpu["idle"] / total,
        memory_used_bytes=memory.total - memory.available,
        memory_available_bytes=memory.available,
        disk_reads_per_s=disk[0],
        disk_read_bytes_per_s=disk[2] * _SECTOR_BYTES,
        disk_writes_per_s=disk[4],
        disk_written_bytes_per_s=disk[6] * _SECTOR_BYTES,
        disk_flushes_per_s=disk[15],
        disk_busy=min(1.0, disk[9] / 1000),
        disk_queue=disk[10] / 1000,
        network_bytes_per_s=sum(of for name, of in network.items() if name != "lo"),
        loopback_bytes_per_s=network.get("lo", 0.0),
        cpu_others_cores=max(0.0, (used - kernel - (now.own_cpu_s - before.own_cpu_s)) / seconds),
    )


def _kernel_cpu_s() -> dict[int, float]:
    """Processor time of the kernel's own threads, which are the children of process 2."""
    found = {}
    for entry in os.scandir("/proc"):
        # Processes end while they are listed.
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                words = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                if words[1] == "2":
                    found[int(entry.name)] = (int(words[11]) + int(words[12])) / _TICKS_PER_S
    return found


def _process_samples(before: _Counters, now: _Counters, began: float) -> list[ProcessSample]:
    seconds = now.at - before.at
    samples = []
    for identity, usage in now.processes.items():
        # A process that began within the period began with nothing.
        earlier = before.processes.get(identity, _NOTHING)
        traffic = usage.traffic.since(earlier.traffic)
        since_read = usage.at - earlier.at if earlier.at else seconds
        samples.append(
            ProcessSample(
                t_s=round(now.at - began, 3),
                pid=identity[0],
                name=usage.name,
                cpu_cores=(usage.cpu_s - earlier.cpu_s) / since_read,
                resident_bytes=usage.resident_bytes,
                threads=usage.threads,
                read_bytes_per_s=(usage.read_bytes - earlier.read_bytes) / seconds,
                written_bytes_per_s=(usage.written_bytes - earlier.written_bytes) / seconds,
                heap_bytes=usage.heap_bytes,
                received_bytes_per_s=traffic.received / seconds,
                sent_bytes_per_s=traffic.sent / seconds,
            )
        )
    return samples


def role(name: str, command: Sequence[str], folder: str = "") -> str:
    """What a process is to a reader: `java` says nothing, which node it is does, as does whose a database server is."""
    if of_node := _NODE_SERVER.search(folder):
        return f"{name}{OF_NODE}{of_node[1]}"
    for word in command:
        if of_node := _NODE.fullmatch(word):
            return f"node {of_node[1]}"
        if word.endswith(CLIENT_JAR):
            return "YCSB"
    return name


def _disk_counters(disk: str | None) -> list[int]:
    """The numbers of the kernel's `/sys/block/*/stat`, 17 since flushes are counted; zeros where there is no disk."""
    if disk is None:
        return [0] * 17
    numbers = [int(word) for word in Path(f"/sys/class/block/{disk}/stat").read_text().split()]
    return (numbers + [0] * 17)[:17]


def disk_of(folder: Path) -> str | None:
    """The name of the whole disk that a folder is on; None where it is on none, as in memory."""
    device = os.stat(folder).st_dev
    entry = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    if not entry.exists():
        return None
    entry = entry.resolve()
    return entry.parent.name if (entry / "partition").exists() else entry.name


def device_number(folder: Path) -> str:
    """The whole disk that a folder is on, as the kernel numbers it: `254:0`."""
    disk = disk_of(folder)
    if disk is None:
        raise HarnessError(f"disks of nodes cannot be limited: {folder} is on none that the kernel knows")
    return Path(f"/sys/class/block/{disk}/dev").read_text().strip()


def read_samples(folder: Path) -> Samples | None:
    """The samples of a run; None where they are gone, as those of published results."""
    if not (folder / "host.csv").exists():
        return None
    return Samples(
        read_host(folder / "host.csv"), read_processes(folder / "processes.csv"), read_nodes(folder / "nodes.csv")
    )


def read_host(path: Path) -> list[HostSample]:
    """The samples of a `host.csv`."""
    with path.open(newline="") as file:
        return [HostSample(**{name: float(value) for name, value in row.items()}) for row in csv.DictReader(file)]


def read_processes(path: Path) -> list[ProcessSample]:
    """The samples of a `processes.csv`."""
    with path.open(newline="") as file:
        return [
            ProcessSample(
                t_s=float(row["t_s"]),
                pid=int(row["pid"]),
                name=row["name"],
                cpu_cores=float(row["cpu_cores"]),
                resident_bytes=int(row["resident_bytes"]),
                threads=int(row["threads"]),
                read_bytes_per_s=float(row["read_bytes_per_s"]),
                written_bytes_per_s=float(row["written_bytes_per_s"]),
                # Not in samples of earlier harnesses.
                heap_bytes=int(row.get("heap_bytes", 0)),
                received_bytes_per_s=float(row.get("received_bytes_per_s", 0)),
                sent_bytes_per_s=float(row.get("sent_bytes_per_s", 0)),
            )
            for row in csv.DictReader(file)
        ]
