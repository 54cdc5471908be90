"""Limits on what is measured, by the kernel's control groups: version 1 or 2, whichever has the controller here."""

import contextlib
import itertools
import os
import time
from pathlib import Path

from harness.errors import HarnessError

# Every group of the harness begins so, and then has the id of the process that made it: what a killed one leaves
# behind is known by it.
PREFIX = "aiodb-campaign-"

MEMORY_V1 = Path("/sys/fs/cgroup/memory")
BLKIO_V1 = Path("/sys/fs/cgroup/blkio")
GROUPS_V2 = Path("/sys/fs/cgroup")
# What is said of a process that reaches a limit of memory.
KILLED_FOR_MEMORY = "killed by the kernel for using up"
# How long the kernel may take to let go of a group whose processes have ended.
_REMOVE_SECONDS = 5.0

_numbers = itertools.count(1)


def memory_limits_missing() -> str | None:
    """Why memory cannot be limited here; None if it can."""
    root = _root()
    if root is None:
        return "memory cannot be limited: this machine has no memory controller of control groups"
    reason = unwritable(root)
    return f"memory cannot be limited: {reason}" if reason else None


def unwritable(root: Path) -> str | None:
    """Why groups cannot be made below a controller's root; None if they can."""
    if os.access(root, os.W_OK):
        return None
    return "only root may make control groups" if os.geteuid() else f"{root} is read-only, as containers have it"


class MemoryLimit:
    """A group whose processes may use so many bytes together, page cache included. Beyond that the kernel first takes
    back page cache, then kills. Swap counts as memory."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        root = _root()
        if root is None:
            raise OSError("no memory controller of control groups")
        self._group = root / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._group.mkdir()
        try:
            self._limit(version_1=root == MEMORY_V1)
        except OSError:
            self.remove()
            raise

    def enter(self) -> None:
        """Takes the calling process in, and with it all that it will start."""
        self._write("cgroup.procs", os.getpid())

    def kills(self) -> int:
        """How many processes the kernel has killed for the limit."""
        return kills_in(self._group)

    def remove(self) -> None:
        """Removes the group, whose processes have ended."""
        remove_group(self._group)

    def _limit(self, version_1: bool) -> None:
        self._write("memory.limit_in_bytes" if version_1 else "memory.max", self.memory_bytes)
        # Not there where the kernel does not count swap.
        with contextlib.suppress(OSError):
            if version_1:
                self._write("memory.memsw.limit_in_bytes", self.memory_bytes)
            else:
                self._write("memory.swap.max", 0)

    def _write(self, name: str, value: int) -> None:
        (self._group / name).write_text(str(value))


def kills_in(group: Path) -> int:
    """How many processes of a group the kernel has killed for its limit of memory."""
    for name in ("memory.oom_control", "memory.events"):
        with contextlib.suppress(OSError):
            for line in (group / name).read_text().splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill":
                    return int(count)
    return 0


def leftover_groups() -> list[Path]:
    """The groups of harnesses that do not run any more."""
    found = [group for root in (MEMORY_V1, BLKIO_V1, GROUPS_V2) for group in root.glob(f"{PREFIX}*")]
    groups = [(of, of.name.removeprefix(PREFIX).partition("-")[0]) for of in found]
    return [group for group, pid in groups if not Path("/proc", pid).exists()]


def remove_group(group: Path) -> None:
    """Removes a group; a process in it that is still ending delays that a little."""
    until = time.monotonic() + _REMOVE_SECONDS
    while group.exists():
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > until:
                raise HarnessError(f"the control group {group} cannot be removed: {error.strerror}") from error
            time.sleep(0.05)


def controllers_v2() -> list[str]:
    """What groups of version 2 can limit here."""
    with contextlib.suppress(OSError):
        return (GROUPS_V2 / "cgroup.subtree_control").read_text().split()
    return []


def _root() -> Path | None:
    if (MEMORY_V1 / "memory.limit_in_bytes").exists():
        return MEMORY_V1
    return GROUPS_V2 if "memory" in controllers_v2() else None
