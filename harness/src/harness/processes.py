"""Starts what is measured and makes sure that nothing of it stays: each command is the leader of a process group of
its own, and whatever its children leave behind becomes the harness's child and is stopped with it."""

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import psutil

from harness.limits import MemoryLimit

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# How long a process may take to end when asked to, before it is killed.
STOP_SECONDS = 10.0
# How often a running command is looked at.
POLL_SECONDS = 0.05
# A line of a log longer than this is cut, so that a program gone wild cannot use up memory.
MAX_LINE_BYTES = 64 * 1024


def adopt_orphans() -> None:
    """Makes this process the parent of whatever its descendants leave behind, so that `stop_all` finds it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def _die_with_parent() -> None:
    # A harness that is killed cannot clean up; its direct children at least go with it.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Command:
    """One running command. Its standard output goes to a file as it is; each line of its standard error goes to a
    log with the seconds since `began`, a value of `time.monotonic()`."""

    def __init__(
        self,
        command: tuple[str, ...],
        output: Path,
        log: Path,
        began: float,
        folder: Path,
        environment: Mapping[str, str],
        limit: MemoryLimit | None = None,
    ) -> None:
        self._limit = limit
        # Why its log could not be written to its end; None as long as it can.
        self.log_failure: OSError | None = None
        self.began_s = time.monotonic() - began
        with output.open("wb") as stdout:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=self._begin,
            )
        assert self._process.stderr is not None
        self._reader = threading.Thread(
            target=self._copy_lines, args=(self._process.stderr, log, began), name="log", daemon=True
        )
        self._reader.start()

    def _begin(self) -> None:
        """In the new process, before it is the command: what a child starts is limited with it."""
        _die_with_parent()
        if self._limit is not None:
            self._limit.enter()

    @property
    def memory_bytes(self) -> int:
        """Its limit of memory; 0 without one."""
        return self._limit.memory_bytes if self._limit else 0

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed one of its processes for reaching the limit."""
        return self._limit is not None and self._limit.kills() > 0

    @property
    def pid(self) -> int:
        """The process id, which is also that of its group."""
        return self._process.pid

    def code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def wait(self, seconds_at_most: float, healthy: Callable[[], None]) -> int | None:
        """Waits for the end and calls `healthy` meanwhile, which raises where waiting is in vain; None at the limit."""
        until = time.monotonic() + seconds_at_most
        while time.monotonic() < until:
            if (code := self.code()) is not None:
                self._reader.join(timeout=STOP_SECONDS)
                return code
            healthy()
            time.sleep(POLL_SECONDS)
        return None

    def stop(self) -> None:
        """Ends the command and its group: asks, waits, kills. Does nothing where it has ended already."""
        _signal_group(self.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=STOP_SECONDS)
        _signal_group(self.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=STOP_SECONDS)
        if self._limit is not None:
            self._limit.remove()

    def _copy_lines(self, source: IO[bytes], log: Path, began: float) -> None:
        with source:
            try:
                with log.open("w", encoding="utf-8") as target:
                    while line := source.readline(MAX_LINE_BYTES):
                        text = line.decode("utf-8", errors="replace").rstrip("\r\n")
                        target.write(f"{time.monotonic() - began:.3f}\t{text}\n")
                        target.flush()
            except OSError as error:
                error.filename = str(log)
                self.log_failure = error
                # A process that writes into a pipe that nobody reads waits for ever.
                while source.read(MAX_LINE_BYTES):
                    pass


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def read_log(log: Path) -> tuple[tuple[float, str], ...]:
    """The lines of a log with their seconds."""
    lines = []
    for line in log.read_text(encoding="utf-8").splitlines():
        seconds, tab, text = line.partition("\t")
        if tab:
            lines.append((float(seconds), text))
    return tuple(lines)


def descendants() -> list[psutil.Process]:
    """Every process that this one started or adopted."""
    return psutil.Process().children(recursive=True)


def stop_all() -> None:
    """Ends every descendant and reaps it: asks, waits, kills."""
    for kill in (False, True):
        remaining = descendants()
        for process in remaining:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill() if kill else process.terminate()
        _, alive = psutil.wait_procs(remaining, timeout=STOP_SECONDS)
        if not alive and not descendants():
            return
