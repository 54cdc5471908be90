"""A run in several parts: what an interrupted one has measured stays beside its raw files, and the next part measures
only what is missing. All parts have one clock, which stands still between them."""

import dataclasses
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.errors import HarnessError
from harness.files import write_whole
from harness.outcomes import OUTCOME, Outcome, read_outcome
from harness.rows import Row
from harness.steps import Place

# How the mark of a row begins whose run was measured in several parts.
RESUMED = "resumed: "
HOST_SAMPLES = "host.csv"
SAMPLES = (HOST_SAMPLES, "processes.csv", "nodes.csv")
# From the last sample of a part to the beginning of the next: no window of a row reaches across.
GAP_SECONDS = 2.0

_PART = re.compile(r"part-(\d+)-")


def resume(kept: Path) -> Outcome | None:
    """What the parts before have measured, with the second at which the next one begins; None where that is nothing.
    What the next part writes again gets the name of its part first."""
    if not kept.exists():
        return None
    try:
        earlier = read_outcome(kept)
    except HarnessError:
        shutil.rmtree(kept)
        return None
    began_s = max(earlier.seconds, _last_second(kept / HOST_SAMPLES)) + GAP_SECONDS
    prefix = f"part-{next_part(kept)}-"
    measured = tuple(f"{row.step}{separator}" for row in earlier.rows for separator in ".-")
    for file in sorted(kept.iterdir()):
        if not (file.name == OUTCOME or _PART.match(file.name) or file.name.startswith(measured)):
            file.rename(kept / f"{prefix}{file.name}")
    return dataclasses.replace(earlier, seconds=began_s)


def is_begun(kept: Path) -> bool:
    """Whether something was measured that the next part need not measure again."""
    try:
        return bool(read_outcome(kept).rows)
    except HarnessError:
        return False


def rows_so_far(place: Place) -> tuple[Row, ...]:
    """What a run that can be resumed has measured up to now, for steps that depend on it."""
    return read_outcome(place.kept).rows if is_begun(place.kept) else ()


def next_part(kept: Path) -> int:
    """The number of the part that is measured now, or next."""
    return 1 + max((int(match[1]) for file in kept.iterdir() if (match := _PART.match(file.name))), default=0)


def unite(kept: Path) -> None:
    """Puts the samples of all parts into one file of each kind."""
    for name in SAMPLES:
        parts = [file for file in kept.iterdir() if _PART.sub("", file.name, count=1) == name and file.name != name]
        if parts:
            files = [*sorted(parts, key=lambda file: int(file.name.split("-")[1])), kept / name]
            lines = [_whole_lines(file) for file in files]
            write_whole(kept / name, "".join([*lines[0][:1], *(line for of in lines for line in of[1:])]))
            for part in parts:
                part.unlink()


def with_parts(rows: Sequence[Row]) -> list[Row]:
    """The rows, marked with their parts where there are several."""
    parts = sorted({row.part for row in rows})
    if len(parts) < 2:
        return list(rows)
    marks = {part: f"{RESUMED}measured in part {rank} of {len(parts)}" for rank, part in enumerate(parts, 1)}
    return [dataclasses.replace(row, marks=(*row.marks, marks[row.part])) for row in rows]


def _last_second(samples: Path) -> float:
    lines = _whole_lines(samples) if samples.exists() else []
    return float(lines[-1].partition(",")[0]) if len(lines) > 1 else 0.0


def _whole_lines(samples: Path) -> list[str]:
    """The header and each line after it, but half a line that a killed harness has left."""
    with samples.open(newline="", encoding="utf-8") as file:
        return [line for line in file if line.endswith("\n")]
