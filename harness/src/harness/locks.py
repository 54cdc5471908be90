"""One campaign at a time: two that measure at once measure each other."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import HarnessError


def machine_lock() -> Path:
    """The lock of all campaigns of this user on this machine, wherever their results go: the same for every shell,
    which a folder that the environment names would not be."""
    return Path("/tmp", f"aiodb-campaigns-{os.getuid()}.lock")


@contextlib.contextmanager
def alone(lock: Path, results: Path) -> Iterator[Path | None]:
    """Holds a lock for a campaign with its results in that folder. Gives the folder of a campaign that has held it and
    was killed, if there is one: what it left lies there."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    # Nobody else's file is written through a link that lies there.
    with os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            there = file.read() or "another folder"
            raise HarnessError(f"another campaign is running, with results in {there}: wait for its end") from error
        killed = file.read()
        _write(file.fileno(), str(results))
        yield Path(killed) if killed else None
        # Not where a campaign ends with an error: then there may be something left.
        _write(file.fileno(), "")


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
