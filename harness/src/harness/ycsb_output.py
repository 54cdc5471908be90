"""Reads what YCSB 0.17 prints and writes: the report on standard output, the status lines on standard error, and the
histograms of each interval."""

import base64
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

# `2026-01-31 12:00:10:250 10 sec: 12345 operations; 1234.5 current ops/sec; est completion in 2 minutes [READ: ...]`
_STATUS = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d):(\d{3}) \d+ sec: (\d+) operations;")

# What a status line says of each kind of operation since the one before, and of the same from their intended start.
_KIND = re.compile(r"\[(Intended-)?[A-Z-]+: Count=(\d+), Max=[\d.]+, Min=[\d.]+, Avg=([\d.]+)")
# How many of a kind have returned anything but OK since the line before.
_FAILED = re.compile(r"\[(?!Intended-)[A-Z-]+-FAILED: Count=(\d+)")
# The longest of a kind, from asking; CLEANUP is none.
_LONGEST = re.compile(r"\[(?!Intended-|CLEANUP)[A-Z-]+: Count=\d+, Max=(\d+)")

# Printed when the time given is over. Threads end the operations that they have begun.
_STOP = "Stop requested for workload"

# The histograms of YCSB hold values up to these many microseconds, with this precision.
_LEAST_US, _MOST_US, _DIGITS = 1, 3_600_000_000, 3

# An encoded histogram: cookie and length before what is compressed, and in that the highest value after 24 bytes.
_ENVELOPE_BYTES = 8
_HIGHEST_AT = 24


@dataclass(frozen=True)
class Status:
    """One status line: operations done since the beginning."""

    # Seconds since 1970: what YCSB's own clock says, and the histograms as well.
    at: float
    # Seconds since the run began, when the line arrived.
    t_s: float
    operations: int
    # The mean latency since the status line before; None where no operation ended.
    latency_us: float | None = None
    # The same from the intended start of each operation; None where it is not said.
    intended_us: float | None = None
    # How many reads and writes since the status line before failed, or found nothing; they count as operations.
    failed: int = 0


@dataclass(frozen=True)
class Latencies:
    """What the histograms of one kind of operation come to."""

    mean_us: float
    # Percentile and latency.
    percentiles_us: tuple[tuple[float, float], ...]

    def percentile_us(self, percent: float) -> float:
        """One of the percentiles that were asked for."""
        return dict(self.percentiles_us)[percent]


@dataclass(frozen=True)
class Report:
    """The report: section to name to value, `READ` to `Return=OK` to 100."""

    sections: dict[str, dict[str, float]]

    def operations(self) -> int:
        """Operations of all kinds, without those of starting and ending."""
        own = {kind: values for kind, values in self.sections.items() if not kind.startswith(("Intended-", "CLEANUP"))}
        return int(sum(values.get("Operations", 0) for values in own.values()))

    def returned(self, code: str) -> int:
        """Operations that returned this code, of all kinds."""
        return int(sum(values.get(f"Return={code}", 0) for values in self.sections.values()))

    def failed(self) -> int:
        """Operations that returned neither OK nor NOT_FOUND."""
        good = ("Return=OK", "Return=NOT_FOUND")
        names = ((name, value) for values in self.sections.values() for name, value in values.items())
        return int(sum(value for name, value in names if name.startswith("Return=") and name not in good))


def read_report(output: str) -> Report:
    """The report among whatever else was printed."""
    sections: dict[str, dict[str, float]] = {}
    for line in output.splitlines():
        parts = [part.strip() for part in line.split(", ")]
        if len(parts) == 3 and parts[0].startswith("[") and parts[0].endswith("]"):
            try:
                sections.setdefault(parts[0][1:-1], {})[parts[1]] = float(parts[2])
            except ValueError:
                # Not every store's own lines have numbers.
                continue
    return Report(sections)


def read_status(log: Iterable[tuple[float, str]]) -> list[Status]:
    """The status lines of the time in which operations were asked for: before it the store is opened, and after it the
    store is closed, which may take long and says nothing of its throughput."""
    found: list[Status] = []
    ending = False
    for t_s, line in log:
        ending = ending or line.startswith(_STOP) or "[CLEANUP: " in line
        if match := _STATUS.match(line):
            operations = int(match[3])
            if ending and found and operations == found[-1].operations:
                continue
            second = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").astimezone().timestamp()
            at = second + int(match[2]) / 1000
            late, intended = _latency_us(line, ""), _latency_us(line, "Intended-")
            found.append(Status(at, t_s, operations, late, intended, sum(map(int, _FAILED.findall(line)))))
    idle = sum(1 for status in found if status.operations == 0)
    return found[max(0, idle - 1) :]


def longest_us(log: Iterable[tuple[float, str]]) -> float | None:
    """The longest operation of all status lines, those of the end too, where some wait for their last answer."""
    return max((float(most) for _, line in log for most in _LONGEST.findall(line)), default=None)


def _latency_us(line: str, prefix: str) -> float | None:
    kinds = [(int(count), float(mean)) for of, count, mean in _KIND.findall(line) if of == prefix]
    total = sum(count for count, _ in kinds)
    return sum(count * mean for count, mean in kinds) / total if total else None


def rates(status: Sequence[Status]) -> list[tuple[float, float]]:
    """Operations per second between status lines: the second of the run in which each span ends, and its rate. YCSB
    prints its last lines within a moment of each other; spans of less than half a second join the next."""
    points = []
    before = status[0] if status else None
    for now in status[1:]:
        assert before is not None
        if now.at - before.at >= 0.5:
            points.append((round(now.t_s, 3), (now.operations - before.operations) / (now.at - before.at)))
            before = now
    return points


def mean_latencies(status: Sequence[Status], intended: bool = False) -> list[tuple[float, float]]:
    """The mean latency in µs by the second of the run at which it was printed, from asking or from when operations
    should have been asked for."""
    means = [(round(of.t_s, 3), of.intended_us if intended else of.latency_us) for of in status[1:]]
    return [(second, mean) for second, mean in means if mean is not None]


def percentile_over_time(
    path: Path, percent: float, from_s: float, until_s: float, window_s: float
) -> list[tuple[float, float]]:
    """A percentile in µs of windows of at least so many seconds, by when each ends: in seconds since 1970, as what they
    are taken from. None of a time in which no operation ended."""
    found: list[tuple[float, float]] = []
    began: float | None = None
    window = HdrHistogram(_LEAST_US, _MOST_US, _DIGITS)
    for interval in _intervals(path, from_s, until_s):
        began = interval.get_start_time_stamp() / 1000 if began is None else began
        window.add(interval)
        ended = interval.get_end_time_stamp() / 1000
        if ended - began >= window_s:
            if window.get_total_count():
                found.append((ended, float(window.get_value_at_percentile(percent))))
            began = None
            window.reset()
    return found


def latencies(path: Path, from_s: float, percents: Sequence[float], until_s: float = math.inf) -> Latencies | None:
    """What a histogram file says of the intervals that begin at or after a second, and before another; None where it
    has none, or where there is no such file."""
    total = HdrHistogram(_LEAST_US, _MOST_US, _DIGITS)
    for interval in _intervals(path, from_s, until_s):
        total.add(interval)
    if total.get_total_count() == 0:
        return None
    found = tuple((percent, float(total.get_value_at_percentile(percent))) for percent in percents)
    return Latencies(float(total.get_mean_value()), found)


def _intervals(path: Path, from_s: float, until_s: float) -> Iterator[HdrHistogram]:
    """What a histogram file says of the intervals that begin at or after a second, and before another."""
    if not path.exists():
        return
    reader = HistogramLogReader(str(path), HdrHistogram(_LEAST_US, _MOST_US, _DIGITS))
    reader.input_file = _WidenedLines(reader.input_file)
    try:
        while interval := reader.get_next_interval_histogram():
            if from_s <= interval.get_start_time_stamp() / 1000 < until_s:
                yield interval
    finally:
        reader.close()


class _WidenedLines:
    """The lines of a histogram file, whose histograms say that they hold values up to the most.

    YCSB's histograms grow while threads record. One may say that it holds less than it counts, and cannot be read.
    """

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def readline(self) -> str:
        line = self.file.readline()
        head, comma, payload = line.rstrip("\n").rpartition(",")
        if not comma or line.startswith(("#", '"')):
            return line
        return f"{head},{_widened(payload)}\n"

    def close(self) -> None:
        self.file.close()


def _widened(payload: str) -> str:
    """An encoded histogram which says that it holds values up to the most."""
    envelope = base64.b64decode(payload)
    encoded = bytearray(zlib.decompress(envelope[_ENVELOPE_BYTES:]))
    (highest,) = struct.unpack_from(">q", encoded, _HIGHEST_AT)
    struct.pack_into(">q", encoded, _HIGHEST_AT, max(highest, _MOST_US))
    compressed = zlib.compress(bytes(encoded))
    return base64.b64encode(envelope[:4] + struct.pack(">i", len(compressed)) + compressed).decode()
