"""What a run used, second by second, as lines: a panel for each resource."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.fields import levels_text
from harness.node_usage import NodeSample
from harness.rows import Row
from harness.sampling import HostSample, ProcessSample, Samples

# Of many processes, or points, so many have a line: the largest ones.
MOST_LINES = 8
# A line less than this part of the panel's highest says nothing.
LEAST_PART = 0.02
# Without a sample for longer than this, a process was not there.
GAP_SECONDS = 2.5
# Less than this on the network is the harness asking whether servers answer.
QUIET_BYTES_PER_S = 100_000

MIB = 1 << 20

Line = tuple[tuple[float, float | None], ...]


@dataclass(frozen=True)
class Panel:
    """Lines over the seconds of a run, all of one unit; None in a line is where it has a gap."""

    title: str
    lines: tuple[tuple[str, Line], ...]


def panels(rows: Sequence[Row], samples: Samples) -> tuple[Panel, ...]:
    """The panels of a run, in reading order; a resource that was not used has none."""
    host, processes, nodes = samples.host, samples.processes, samples.nodes
    made = [
        Panel("throughput, operations/s", _of_rows(rows, lambda row: row.series)),
        Panel("mean latency, µs", _of_rows(rows, lambda row: row.latency_us)),
        _host("the host's processor, %", host, 0.01, user="cpu_user", system="cpu_system", waiting="cpu_iowait",
              stolen="cpu_steal"),
        _processes("processor of processes, cores", processes, lambda of: of.cpu_cores),
        _processes("resident memory, MiB", processes, lambda of: of.resident_bytes / MIB),
        _processes("Java heap, MiB", processes, lambda of: of.heap_bytes / MIB),
        _host("the machine's disk, 1/s", host, 1, reads="disk_reads_per_s", writes="disk_writes_per_s",
              flushes="disk_flushes_per_s"),
        _host("the machine's disk, MiB/s", host, MIB, read="disk_read_bytes_per_s", written="disk_written_bytes_per_s"),
    ]  # fmt: skip
    if any(of.loopback_bytes_per_s + of.network_bytes_per_s > QUIET_BYTES_PER_S for of in host):
        made.append(_host("network, MiB/s", host, MIB, loopback="loopback_bytes_per_s", network="network_bytes_per_s"))
    if any(of.received_bytes_per_s + of.sent_bytes_per_s > QUIET_BYTES_PER_S for of in processes):
        made.append(
            _processes("TCP, MiB/s", processes, lambda of: (of.received_bytes_per_s + of.sent_bytes_per_s) / MIB)
        )
    made += [
        _nodes("nodes' disks, 1/s", nodes, lambda of: of.reads_per_s + of.writes_per_s),
        _nodes("nodes' disks, MiB/s", nodes, lambda of: (of.read_bytes_per_s + of.written_bytes_per_s) / MIB),
    ]
    return tuple(panel for panel in made if panel.lines)


def _of_rows(rows: Iterable[Row], of: Callable[[Row], Sequence[tuple[float, float]]]) -> tuple[tuple[str, Line], ...]:
    """A line for each point; of many, that follow each other, one line together."""
    found = [(levels_text(row.levels), tuple(of(row))) for row in rows if of(row)]
    if len(found) <= MOST_LINES:
        return tuple(found)
    joined: list[tuple[float, float | None]] = []
    for _, line in found:
        joined += [*line, (line[-1][0], None)]
    return (("all points, one after the other", tuple(joined)),)


def _host(title: str, host: Sequence[HostSample], unit: float, **columns: str) -> Panel:
    lines = {name: tuple((of.t_s, getattr(of, column) / unit) for of in host) for name, column in columns.items()}
    return Panel(title, tuple((name, line) for name, line in lines.items() if any(value for _, value in line)))


def _processes(title: str, processes: Sequence[ProcessSample], value: Callable[[ProcessSample], float]) -> Panel:
    return Panel(title, _largest((of.name, of.t_s, value(of)) for of in processes))


def _nodes(title: str, nodes: Sequence[NodeSample], value: Callable[[NodeSample], float]) -> Panel:
    return Panel(title, _largest((f"node {of.node}", of.t_s, value(of)) for of in nodes))


def _largest(samples: Iterable[tuple[str, float, float]]) -> tuple[tuple[str, Line], ...]:
    """A line for each name, those of one name together."""
    lines: dict[str, dict[float, float]] = {}
    for name, second, value in samples:
        of = lines.setdefault(name, {})
        of[second] = of.get(second, 0.0) + value
    heights = {name: max(of.values()) for name, of in lines.items()}
    top = max(heights.values(), default=0.0)
    shown = sorted(heights, key=lambda name: -heights[name])[:MOST_LINES]
    return tuple((name, _with_gaps(lines[name])) for name in sorted(shown) if heights[name] > LEAST_PART * top)


def _with_gaps(of: dict[float, float]) -> Line:
    line: list[tuple[float, float | None]] = []
    for second, value in of.items():
        if line and second - line[-1][0] > GAP_SECONDS:
            line.append((second, None))
        line.append((second, value))
    return tuple(line)
