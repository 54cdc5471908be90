"""Room on the disk that is measured: asked for before anything starts, and watched while something runs, since a disk
that is full fails stores, logs and results alike, each with another message."""

import errno
import shutil
from pathlib import Path

from harness.errors import HarnessError

# With less than this the disk counts as full: what the harness itself writes at the end of a run must have room.
LEAST_FREE_BYTES = 64 << 20
# What is kept of a run: samples, logs and histograms.
KEPT_BYTES_PER_S = 10_000

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def require_room(folder: Path, campaign: str, needed_bytes: float) -> None:
    """Refuses a campaign that is to write so many bytes at once, where there is no room for them."""
    needed, free = needed_bytes + LEAST_FREE_BYTES, free_bytes(folder)
    if free < needed:
        raise HarnessError(
            f"{campaign} needs about {disk_size(needed)} on the disk of {folder}, and {disk_size(free)} are free "
            "there: free some, or choose a folder on a larger disk with --results"
        )


def check_room(folder: Path, run: str) -> None:
    """Ends a run whose disk is about to be full."""
    if (free := free_bytes(folder)) < LEAST_FREE_BYTES:
        raise HarnessError(
            f"the disk of {folder} is full, {disk_size(free)} are free: {run} was ended. What was measured before is "
            "kept; free some space, and the same command measures the rest"
        )


def free_bytes(folder: Path) -> int:
    """What may still be written there."""
    return shutil.disk_usage(folder).free


def cannot_go_on(error: OSError, run: str) -> HarnessError:
    """What a person is told of a run whose files could not be written or read."""
    file, space = error.filename or "a file of the run", "free some space" if error.errno in _FULL else "mend that"
    return HarnessError(
        f"cannot write or read {file}: {error.strerror or error}: {run} was ended. What was measured before is kept; "
        f"{space}, and the same command measures the rest"
    )


def disk_size(size_bytes: float) -> str:
    """Bytes as people say them."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e8 else f"{size_bytes / 1e6:.1f} MB"
