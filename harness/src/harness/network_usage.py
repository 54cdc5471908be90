"""What each process sends and receives over TCP, as the kernel counts it for each connection. Processes on one machine
share its devices, so what goes over those says nothing of any one of them."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# Of each connection a line, with counts that are left out as long as they are 0.
_LIST = ("ss", "--tcp", "--info", "--extended", "--oneline", "--numeric", "--no-header", "state", "established")
_INODE = re.compile(r"\bino:([1-9]\d*)")
_RECEIVED = re.compile(r"\bbytes_received:(\d+)")
_SENT = re.compile(r"\bbytes_sent:(\d+)")
_SECONDS_AT_MOST = 5.0


@dataclass(frozen=True)
class Traffic:
    """Bytes of payload that a process or a connection has received, and has sent."""

    received: int = 0
    sent: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        return Traffic(self.received + other.received, self.sent + other.sent)

    def since(self, earlier: "Traffic") -> "Traffic":
        """What came after an earlier count; all of it where the kernel has begun to count again."""
        if self.received < earlier.received or self.sent < earlier.sent:
            return self
        return Traffic(self.received - earlier.received, self.sent - earlier.sent)


@dataclass
class TrafficCounter:
    """Adds up what the connections of each process carry, from look to look: once a connection has ended the kernel
    knows nothing of it any more, so what it carried since the last look is lost."""

    _totals: dict[int, Traffic] = field(default_factory=dict)
    _connections: dict[int, Traffic] = field(default_factory=dict)
    # The process that has a connection; None for those of others.
    _owners: dict[int, int | None] = field(default_factory=dict)

    def count(self, processes: Iterable[int]) -> Mapping[int, Traffic]:
        """What each process has carried since it was first seen, by its id; nothing where the kernel does not say."""
        return self.add(_established(), processes)

    def add(self, connections: Mapping[int, Traffic], processes: Iterable[int]) -> Mapping[int, Traffic]:
        """Takes in the connections that there are now, by the inodes of their sockets."""
        self._owners = {inode: owner for inode, owner in self._owners.items() if inode in connections}
        if unknown := connections.keys() - self._owners.keys():
            # To look through the files of a process costs more than all else here.
            self._owners |= dict.fromkeys(unknown) | _owners(processes, unknown)
        for inode, traffic in connections.items():
            owner = self._owners[inode]
            if owner is not None:
                more = traffic.since(self._connections.get(inode, Traffic()))
                self._totals[owner] = self._totals.get(owner, Traffic()) + more
        self._connections = dict(connections)
        return self._totals


def parse(output: str) -> dict[int, Traffic]:
    """What `ss` says of each connection, by the inode of its socket; those that nobody has accepted yet have none."""
    found = {}
    for line in output.splitlines():
        if inode := _INODE.search(line):
            received, sent = (int(of[1]) if (of := count.search(line)) else 0 for count in (_RECEIVED, _SENT))
            found[int(inode[1])] = Traffic(received, sent)
    return found


def _established() -> dict[int, Traffic]:
    try:
        listed = subprocess.run(_LIST, capture_output=True, text=True, check=True, timeout=_SECONDS_AT_MOST)
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse(listed.stdout)


def _owners(processes: Iterable[int], inodes: Iterable[int]) -> dict[int, int | None]:
    """The processes that have these sockets open."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    owners: dict[int, int | None] = {}
    for pid in processes:
        # Processes end, and close files, while they are looked through.
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if (inode := wanted.get(os.readlink(entry.path))) is not None:
                        owners[inode] = pid
    return owners
