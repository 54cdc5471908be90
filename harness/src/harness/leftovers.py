"""What a harness that was killed has left behind: it could not clean up, so the next one does. Nothing is noted
beforehand, since a harness can be killed between starting a process and noting it: processes are known by a variable
of their environment, which all their children inherit, and folders by their place."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from harness.limits import leftover_groups, remove_group

# Holds the folder of all campaigns' results, in the environment of every process that the harness starts.
MARK = "AIODB_CAMPAIGNS"

# Below a campaign's folder: stores, and what is kept of runs that are not finished.
SCRATCH = "scratch"
PARTIAL = "partial"


def sweep(results: Path) -> list[str]:
    """Removes what lies about, says what that was. Only for who holds the lock of these results: then whatever is
    there belongs to nobody."""
    swept = []
    marked = list(_marked(results))
    for process in marked:
        with contextlib.suppress(psutil.NoSuchProcess):
            swept.append(f"process {process.pid} ({process.name()})")
            process.kill()
    psutil.wait_procs(marked, timeout=10)
    for group in leftover_groups():
        remove_group(group)
        swept.append(f"control group {group}")
    for kind in (SCRATCH, PARTIAL):
        for folder in sorted(results.glob(f"*/*/{kind}/*")):
            shutil.rmtree(folder)
            swept.append(f"folder {folder}")
    return swept


def _marked(results: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        # Processes of others cannot be read, and zombies have no environment any more.
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(results):
                yield process
