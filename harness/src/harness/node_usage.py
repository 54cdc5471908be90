"""What each limited node reads and writes of the disk, as the kernel counts it for the control group that limits it."""

import contextlib
import csv
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.limits import BLKIO_V1, GROUPS_V2, PREFIX

# Between a group's prefix, which ends with the id of the process that made it, and the number of the node.
NODE = "-node-"

# The names that version 2 has for reads, writes, bytes read and bytes written, in the order of a sample.
_NAMES_V2 = ("rios", "wios", "rbytes", "wbytes")
# Files of version 1, for operations and for bytes, and the names of their lines.
_FILES_V1 = ("blkio.throttle.io_serviced", "blkio.throttle.io_service_bytes")
_NAMES_V1 = ("Read", "Write")


@dataclass(frozen=True)
class NodeSample:
    """One node over one period that ends at `t_s`, seconds since the run began."""

    t_s: float
    node: int
    reads_per_s: float
    writes_per_s: float
    read_bytes_per_s: float
    written_bytes_per_s: float


# Reads, writes, bytes read and bytes written since the group was made.
Counts = tuple[int, int, int, int]


def node_counts(roots: Iterable[Path] = (BLKIO_V1, GROUPS_V2)) -> dict[int, Counts]:
    """The counts of every node that this process limits, by its number."""
    found = {}
    for root in roots:
        for group in root.glob(f"{PREFIX}{os.getpid()}{NODE}*"):
            # A node may end, and its group with it, while they are listed.
            with contextlib.suppress(OSError):
                if counts := _counts(group):
                    found[int(group.name.rpartition("-")[2])] = counts
    return found


def node_samples(before: dict[int, Counts], now: dict[int, Counts], t_s: float, seconds: float) -> Iterator[NodeSample]:
    """What each node did between two looks, so many seconds apart."""
    for node, counts in sorted(now.items()):
        earlier = before.get(node, (0, 0, 0, 0))
        yield NodeSample(t_s, node, *((new - old) / seconds for new, old in zip(counts, earlier, strict=True)))


def read_nodes(path: Path) -> list[NodeSample]:
    """The samples of a `nodes.csv`; none of a harness that did not take them."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            NodeSample(float(row.pop("t_s")), int(row.pop("node")), *map(float, row.values()))
            for row in csv.DictReader(file)
        ]


def _counts(group: Path) -> Counts | None:
    if (group / "io.stat").exists():
        words = [word.partition("=") for word in (group / "io.stat").read_text().split()]
        reads, writes, read, written = (
            sum(int(value) for name, _, value in words if name == wanted) for wanted in _NAMES_V2
        )
        return reads, writes, read, written
    if not (group / _FILES_V1[0]).exists():
        return None
    (reads, writes), (read, written) = (_sums_v1(group / name) for name in _FILES_V1)
    return reads, writes, read, written


def _sums_v1(file: Path) -> tuple[int, int]:
    """Of all disks. Lines are `254:0 Read 17`; the total has no disk."""
    lines = [line.split() for line in file.read_text().splitlines()]
    read, written = (sum(int(words[2]) for words in lines if words[1:2] == [name]) for name in _NAMES_V1)
    return read, written
