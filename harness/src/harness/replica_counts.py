"""What each node of a cluster has done as a replica, as `scripts/cluster.sh replicas` prints it once a second."""

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ReplicaCounts:
    """Reads and writes that reached one node, and how long all of them took there: without queues, commit log and
    network."""

    reads: int
    read_us: int
    writes: int
    write_us: int

    def since(self, earlier: "ReplicaCounts") -> "ReplicaCounts":
        """What was counted after an earlier look."""
        return ReplicaCounts(
            self.reads - earlier.reads,
            self.read_us - earlier.read_us,
            self.writes - earlier.writes,
            self.write_us - earlier.write_us,
        )


def counts_between(path: Path, began: float, ended: float) -> Mapping[int, ReplicaCounts]:
    """By the number of a node what it did between two times, in seconds since 1970, as far as it was looked at within
    them; nodes with fewer than two looks are missing."""
    first: dict[int, ReplicaCounts] = {}
    last: dict[int, ReplicaCounts] = {}
    with path.open(newline="") as file:
        for at, node, counts in _looks(file):
            if began <= at <= ended:
                first.setdefault(node, counts)
                last[node] = counts
    return {node: last[node].since(first[node]) for node in first if last[node] is not first[node]}


def _looks(lines: Iterable[str]) -> Iterable[tuple[float, int, ReplicaCounts]]:
    reader = csv.reader(lines)
    head = next(reader, [])
    for words in reader:
        # The last line may be written just now.
        if len(words) == len(head):
            at_ms, node, *counts = map(int, words)
            yield at_ms / 1000, node, ReplicaCounts(*counts)
