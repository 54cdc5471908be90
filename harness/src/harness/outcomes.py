"""What a run has found, read and written: the `run.json` in its folder."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import HarnessError
from harness.fields import Value
from harness.files import write_whole
from harness.rows import Row

# The version of the files of a campaign's folder; a later program that writes something else raises it.
FORMAT = 1
# What a run has found, in its folder.
OUTCOME = "run.json"


@dataclass(frozen=True)
class Failure:
    """Points of a run that have no value, and why."""

    step: str
    reason: str
    # The last lines of the log.
    log: tuple[str, ...]
    points: tuple[Mapping[str, Value], ...]


@dataclass(frozen=True)
class Outcome:
    """A finished run, whether it found something or failed."""

    run_id: str
    store: str
    repetition: int
    began_utc: str
    seconds: float
    commands: tuple[tuple[str, ...], ...]
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Writes the `run.json` of a run."""
    write_json(folder / OUTCOME, dataclasses.asdict(outcome))


def read_outcome(folder: Path) -> Outcome:
    """Reads the `run.json` of a run."""
    values = read_json(folder / OUTCOME)
    try:
        return Outcome(
            run_id=values["run_id"],
            store=values["store"],
            repetition=values["repetition"],
            began_utc=values["began_utc"],
            seconds=values["seconds"],
            commands=tuple(tuple(command) for command in values["commands"]),
            rows=tuple(_row(row) for row in values["rows"]),
            failures=tuple(_failure(failure) for failure in values["failures"]),
        )
    except (KeyError, TypeError) as error:
        raise HarnessError(f"{folder / OUTCOME} is no result of a run ({error!r}): remove its folder") from error


def _row(values: Mapping[str, Any]) -> Row:
    return Row(
        levels=values["levels"],
        values=values["values"],
        window_s=(values["window_s"][0], values["window_s"][1]),
        ceiling_per_s=values["ceiling_per_s"],
        marks=tuple(values["marks"]),
        series=tuple((second, rate) for second, rate in values["series"]),
        # Not in results of earlier harnesses.
        latency_us=tuple((second, latency) for second, latency in values.get("latency_us", ())),
        p99_us=tuple((second, latency) for second, latency in values.get("p99_us", ())),
        percentiles_us={
            kind: tuple((percent, latency) for percent, latency in curve)
            for kind, curve in values.get("percentiles_us", {}).items()
        },
        step=values.get("step", ""),
        part=values.get("part", 1),
    )


def _failure(values: Mapping[str, Any]) -> Failure:
    return Failure(values["step"], values["reason"], tuple(values["log"]), tuple(values["points"]))


def read_json(path: Path, known: Sequence[int] = (FORMAT,)) -> dict[str, Any]:
    """A file that this program writes; raises HarnessError where it is none, or of another version."""
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise HarnessError(f"cannot read {path}: {error}; move its folder away") from error
    if values.get("format") not in known:
        raise HarnessError(
            f"{path} has format {values.get('format')}, this program knows {' and '.join(map(str, known))}: use "
            "the one that wrote it"
        )
    return values


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Writes a file of the present version."""
    write_whole(path, json.dumps({"format": FORMAT, **content}, indent=2, default=_plain) + "\n")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a result")
