"""Limits of single servers among several on one machine, so that they stand for machines with slow disks and little
memory: a control group for each, which the server enters before it starts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from harness.fields import Field, Value
from harness.limits import (
    BLKIO_V1,
    GROUPS_V2,
    KILLED_FOR_MEMORY,
    MEMORY_V1,
    PREFIX,
    controllers_v2,
    kills_in,
    remove_group,
    unwritable,
)
from harness.node_usage import NODE

# What a group is told for no limit.
_NONE = 0


def _limit(what: str) -> Field:
    return Field(int, f"{what}, for each node; 0: no limit", least=0, default=_NONE)


# The parameters that limit nodes; an experiment knows all of them, or some.
PARAMETERS = MappingProxyType(
    {
        "node_reads_per_s": _limit("reads of the disk per second"),
        "node_writes_per_s": _limit("writes and flushes of the disk per second"),
        "node_bytes_per_s": _limit("bytes read, and written, per second"),
        "node_memory_mib": _limit("memory, page cache included"),
    }
)


@dataclass(frozen=True)
class NodeLimits:
    """What each node may use; 0 is no limit. The kernel counts what a process writes past the page cache or waits for;
    what it writes back later by itself counts for nobody with control groups of version 1."""

    reads_per_s: int = _NONE
    # Flushes count as writes.
    writes_per_s: int = _NONE
    # Of reads, and of writes.
    bytes_per_s: int = _NONE
    # Page cache included.
    memory_bytes: int = _NONE

    @classmethod
    def of(cls, parameters: Mapping[str, Value]) -> NodeLimits:
        """Those that the parameters of a campaign set; none of a campaign without such parameters."""
        reads, writes, size, memory_mib = (int(parameters.get(name, _NONE)) for name in PARAMETERS)
        return cls(reads, writes, size, memory_mib << 20)

    def limits_disk(self) -> bool:
        """Whether the disk is limited at all."""
        return bool(self.reads_per_s or self.writes_per_s or self.bytes_per_s)

    def __bool__(self) -> bool:
        return self.limits_disk() or bool(self.memory_bytes)

    def missing(self) -> str | None:
        """Why these limits cannot be set here; None if they can."""
        for controller, wanted in (("blkio", self.limits_disk()), ("memory", bool(self.memory_bytes))):
            root = _root(controller)
            if wanted and root is None:
                return f"nodes cannot be limited: this machine has no {controller} controller of control groups"
            if wanted and root is not None and (reason := unwritable(root)):
                return f"nodes cannot be limited: {reason}"
        return None


@dataclass(frozen=True)
class NodeGroups:
    """The control groups of so many nodes, numbered from 1."""

    limits: NodeLimits
    nodes: int
    # The disk that they write to, as the kernel numbers it; empty where that is not limited.
    device: str

    def entrances(self, node: str) -> list[Path]:
        """The files that a process writes its id to in order to be limited as this node."""
        return [folder / "cgroup.procs" for folder in self._folders(node)]

    def make(self) -> None:
        """Makes them, with the limit of memory."""
        for node in range(1, self.nodes + 1):
            for folder in self._folders(str(node)):
                folder.mkdir(exist_ok=True)
        self._set(self._memory())

    def limit_disks(self) -> None:
        """Limits the disks: once the nodes answer and have their tables, which takes them minutes otherwise."""
        self._set(self._disk())

    def killed(self) -> str | None:
        """Which node the kernel has killed for its memory; None where it is none."""
        memory_mib = self.limits.memory_bytes >> 20
        for node in range(1, self.nodes + 1) if memory_mib else ():
            if any(kills_in(folder) for folder in self._folders(str(node))):
                return f"node {node} was {KILLED_FOR_MEMORY} its {memory_mib} MiB of memory"
        return None

    def remove(self) -> None:
        """Removes them; their processes have ended. One that cannot be removed does not keep the others."""
        with contextlib.ExitStack() as removing:
            for node in range(1, self.nodes + 1):
                for folder in self._folders(str(node)):
                    removing.callback(remove_group, folder)

    def _folders(self, node: str) -> list[Path]:
        wanted = {"blkio": self.limits.limits_disk(), "memory": bool(self.limits.memory_bytes)}
        roots = {root for controller in wanted if wanted[controller] and (root := _root(controller)) is not None}
        return [root / f"{PREFIX}{os.getpid()}{NODE}{node}" for root in sorted(roots)]

    def _set(self, settings: Sequence[tuple[str, str]]) -> None:
        """Writes settings, each to the group that knows it."""
        for node in range(1, self.nodes + 1):
            for name, value in settings:
                for folder in self._folders(str(node)):
                    if (folder / name).exists():
                        (folder / name).write_text(value)

    def _memory(self) -> list[tuple[str, str]]:
        name = "memory.limit_in_bytes" if _root("memory") == MEMORY_V1 else "memory.max"
        return [(name, str(self.limits.memory_bytes))] if self.limits.memory_bytes else []

    def _disk(self) -> list[tuple[str, str]]:
        limits = {
            ("blkio.throttle.read_iops_device", "riops"): self.limits.reads_per_s,
            ("blkio.throttle.write_iops_device", "wiops"): self.limits.writes_per_s,
            ("blkio.throttle.read_bps_device", "rbps"): self.limits.bytes_per_s,
            ("blkio.throttle.write_bps_device", "wbps"): self.limits.bytes_per_s,
        }
        set_ones = {names: value for names, value in limits.items() if value != _NONE}
        if not set_ones:
            return []
        if _root("blkio") == BLKIO_V1:
            return [(file, f"{self.device} {value}") for (file, _), value in set_ones.items()]
        return [("io.max", f"{self.device} {' '.join(f'{word}={value}' for (_, word), value in set_ones.items())}")]


def _root(controller: str) -> Path | None:
    version_1 = {"blkio": BLKIO_V1, "memory": MEMORY_V1}[controller]
    if version_1.exists():
        return version_1
    return GROUPS_V2 if {"blkio": "io", "memory": "memory"}[controller] in controllers_v2() else None
