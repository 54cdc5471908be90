"""What a harness that was killed has left behind: it could not clean up, so the next one does. Nothing is noted
beforehand, since a harness can be killed between starting a process and noting it: processes are known by a variable
of their environment, which all their children inherit, and folders by their place."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.errors import HarnessError
from harness.limits import leftover_groups, remove_group
from harness.parts import is_begun

# Holds the lock under which a campaign runs, in the environment of every process that the harness starts: the harness
# that has the lock knows that they are left over.
MARK = "AIODB_CAMPAIGNS"

# Below a campaign's folder: stores, and what is kept of runs that are not finished.
SCRATCH = "scratch"
PARTIAL = "partial"

# How long processes that are still ending may keep a folder from being removed.
_REMOVE_SECONDS = 5.0


def sweep(results: Path, mark: str) -> list[str]:
    """Removes what lies about, says what that was. Only for who holds the locks of these results and of that mark: then
    whatever is there belongs to nobody. What an interrupted run has measured stays."""
    swept = []
    marked = list(_marked(mark))
    for process in marked:
        with contextlib.suppress(psutil.NoSuchProcess):
            swept.append(f"process {process.pid} ({process.name()})")
            process.kill()
    psutil.wait_procs(marked, timeout=10)
    for group in leftover_groups():
        # One with processes of another campaign, which nobody has swept yet, is not removed.
        with contextlib.suppress(HarnessError):
            remove_group(group)
            swept.append(f"control group {group}")
    for kind in (SCRATCH, PARTIAL):
        for folder in sorted(results.glob(f"*/*/{kind}/*")):
            if kind == SCRATCH or not is_begun(folder):
                remove_folder(folder)
                swept.append(f"folder {folder}")
    return swept


def remove_folder(folder: Path) -> None:
    """Removes a folder, if it is there; a process that is still writing into it delays that a little."""
    until = time.monotonic() + _REMOVE_SECONDS
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        if time.monotonic() > until:
            raise HarnessError(f"{folder} cannot be removed: remove it by hand")
        time.sleep(0.1)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        # Processes of others cannot be read, and zombies have no environment any more.
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == mark:
                yield process
