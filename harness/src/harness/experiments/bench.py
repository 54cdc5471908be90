"""What the experiments over `aiodb bench` share: how it is called, and how its JSON is read."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.fields import Value
from harness.steps import BadOutputError, Finished

# Loading, per pair, on a slow disk; only for the estimate of how long a run takes.
LOAD_SECONDS_PER_PAIR = 25e-6
# Pairs of 8 and 4096 bytes on the disk: in a store of ours with its index, and in LMDB, half of whose pages stay empty.
_PAIR_BYTES = 4_500
_LMDB_PAIR_BYTES = 8_400
# What a store of ours has there beside its pairs: segments that are made before they are needed.
_STORE_BYTES = 1 << 29


@dataclass(frozen=True)
class BenchRow:
    """One row of `aiodb bench NAME --json`, whose values are checked as they are read."""

    values: Mapping[str, Any]

    def number(self, name: str) -> float:
        """A finite number that must be there."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadOutputError(f"{name} is {value!r}, which is no number")
        return float(value)

    def rate(self, name: str) -> float:
        """A number above zero that must be there: nothing runs at no operations per second."""
        value = self.number(name)
        if value <= 0:
            raise BadOutputError(f"{name} is {value}: not above zero, so nothing was measured")
        return value

    def optional(self, *names: str) -> dict[str, float]:
        """Those of the numbers that are there."""
        return {name: self.number(name) for name in names if self.values.get(name) is not None}


def bench_rows(output: str, bench: str) -> list[BenchRow]:
    """The rows that a benchmark printed; raises BadOutputError where it printed something else."""
    try:
        outcome = json.loads(output)
    except json.JSONDecodeError as error:
        raise BadOutputError(f"the output is no JSON: {error}") from error
    if not isinstance(outcome, dict) or outcome.get("bench") != bench:
        raise BadOutputError(f"the output is no result of `aiodb bench {bench}`")
    rows = outcome.get("rows")
    if not isinstance(rows, list) or not rows:
        raise BadOutputError(f"the result of `aiodb bench {bench}` has no rows")
    return [BenchRow(row) for row in rows]


def windows_of_lines(finished: Finished, beginning: str) -> list[tuple[float, float]]:
    """From the line before to each line that begins so, in seconds: the benchmark prints one as a point is done, and
    before the first one that the store is ready."""
    windows = []
    before = finished.began_s
    for seconds, line in finished.log:
        if line.startswith(beginning):
            windows.append((before, seconds))
        before = seconds
    return windows


def store_bytes(pairs: Value) -> float:
    """What a store of ours takes on the disk with so many pairs."""
    return _STORE_BYTES + int(pairs) * _PAIR_BYTES


def lmdb_bytes(pairs: Value) -> float:
    """The same of LMDB, on the disk and in memory."""
    return int(pairs) * _LMDB_PAIR_BYTES


def comma(values: tuple[int | float | str, ...]) -> str:
    """A list as the command line takes it."""
    return ",".join(str(value) for value in values)
