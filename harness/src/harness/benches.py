"""The benches' files beside the documents: one JSON object a line, a round of a line each. What they were measured with
stands in `docs/benches.toml`."""

import json
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.errors import HarnessError
from harness.toml_lines import read_toml

ABOUT = "benches.toml"
# What no storage can be faster than, and whose lines are held against others.
CEILING = "null"
OURS = "aiodb"
# Metrics of which more is better; of all others less is.
RATES = ("per_second",)

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Spread:
    """The median of the rounds, with the least and the most."""

    median: float
    low: float
    high: float


class _Part(BaseModel):
    """Every table refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class About(_Part):
    """Where a file comes from."""

    what: str
    command: str
    commit: str
    date: str
    # Where a workload was measured at another commit.
    commits: dict[str, str] = {}
    # What a line may have of memory, by its data; 1 where memory has room for all of them.
    memory_part: float = 1.0

    def measured(self, workload: str) -> str:
        """The commit and the date of a workload."""
        return f"{self.commits.get(workload, self.commit)}, {self.date}"

    def argument(self, name: str) -> float | None:
        """A number among the command's arguments; None where it has none of that name."""
        words = (word.partition("=") for word in shlex.split(self.command))
        return next((float(value) for key, _, value in words if key == f"--{name}"), None)


class Workload(_Part):
    """What is asked of a line."""

    title: str
    # The kinds of operation that a sizing knows, as parts of all; empty where they are others.
    mix: dict[str, float] = {}
    scan_rows: int = 0


class Node(_Part):
    """What the benches of one node have in common."""

    cores: int
    record_bytes: int
    durability: str
    # Requests, where a command does not say how many.
    in_flight: int


class Benches(_Part):
    """All of `docs/benches.toml`."""

    machine: str
    node: Node
    # By line.
    engines: dict[str, str]
    workloads: dict[str, Workload]
    files: dict[str, About]

    def about(self, name: str) -> About:
        """What is known of a file; raises HarnessError where nothing is."""
        if name not in self.files:
            raise HarnessError(f"docs/{ABOUT} has no file {name!r}: say there where it comes from")
        return self.files[name]

    def workload(self, name: str) -> Workload:
        """What a workload is; raises HarnessError where nothing is known of it."""
        if name not in self.workloads:
            raise HarnessError(f"docs/{ABOUT} has no workload {name!r}: say there what it asks")
        return self.workloads[name]


@dataclass(frozen=True)
class Bench:
    """The rows of one file."""

    name: str
    rows: tuple[Row, ...]

    def workloads(self) -> list[str]:
        """What was measured, in the order of the file."""
        return list(dict.fromkeys(_workload(row) for row in self.rows))

    def lines(self, workload: str) -> list[str]:
        """The lines that a workload was measured of."""
        return list(dict.fromkeys(str(row["line"]) for row in self.rows if _workload(row) == workload))

    def of(self, workload: str, line: str, metric: str) -> Spread:
        """A metric of a line over its rounds."""
        return _spread(self._by_round(workload, line, metric).values())

    def by_best(self, workload: str, metric: str, above: bool = False) -> Spread:
        """Ours by the best of the others within each round; `above`: what either takes more than the ceiling."""
        others = [line for line in self.lines(workload) if line not in (OURS, CEILING)]
        if not others:
            raise HarnessError(f"{self.name}: nothing is beside {OURS} for {workload}")
        best: Callable[[Iterable[float]], float] = max if metric in RATES else min
        ours = self._by_round(workload, OURS, metric)
        theirs = [self._by_round(workload, line, metric) for line in others]
        ceiling = self._by_round(workload, CEILING, metric) if above else {}
        quotients = []
        for number, value in ours.items():
            found = [of[number] for of in theirs if number in of]
            if found:
                least = ceiling.get(number, 0.0)
                quotients.append((value - least) / (best(found) - least))
        return _spread(quotients)

    def by_line(self, workload: str, metric: str, other: str) -> Spread:
        """Ours by another line within each round."""
        theirs = self._by_round(workload, other, metric)
        ours = self._by_round(workload, OURS, metric)
        return _spread(value / theirs[number] for number, value in ours.items() if number in theirs)

    def _by_round(self, workload: str, line: str, metric: str) -> dict[int, float]:
        found = {
            int(row["round"]): _value(row, metric)
            for row in self.rows
            if _workload(row) == workload and row["line"] == line
        }
        if not found:
            raise HarnessError(f"{self.name} has no {metric} of {line} for {workload}")
        return found


def read_bench(path: Path) -> Bench:
    """The rows of a file; raises HarnessError with file and line where one is none."""
    rows = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise HarnessError(f"no bench has left {path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except json.JSONDecodeError as error:
                raise HarnessError(f"{path}:{number}: this line is no JSON: {error}") from error
    return Bench(path.name, tuple(rows))


def read_benches(docs: Path) -> Benches:
    """What is known of all files; raises PlanError with the line that is wrong."""
    file = read_toml(docs / ABOUT)
    try:
        return Benches.model_validate(file.values)
    except ValidationError as error:
        first = error.errors()[0]
        place = tuple(map(str, first["loc"]))
        raise file.refusal(f"`{'.'.join(place)}`: {first['msg'].lower()}", *place) from error


def _workload(row: Row) -> str:
    return str(row.get("workload", row.get("operation")))


def _value(row: Row, metric: str) -> float:
    """A metric of a row; of operations that take long, what they do per second or cost."""
    if metric == "per_second" and "seconds" in row:
        return 1 / float(row["seconds"])
    if metric == "megabytes_per_s":
        return float(row["megabytes"]) / float(row["seconds"])
    if metric == "processor_s_per_gb":
        return 1000 * float(row["processor_seconds"]) / float(row["megabytes"])
    if metric == "slowest_window":
        windows = [float(of) for of in row["windows"]]
        return min(windows) / statistics.median(windows)
    try:
        return float(row[metric])
    except KeyError as error:
        raise HarnessError(f"a bench has no {metric}: it has {', '.join(row)}") from error


def _spread(values: Iterable[float]) -> Spread:
    found = list(values)
    if not found:
        raise HarnessError("no round has both values")
    return Spread(statistics.median(found), min(found), max(found))
