"""Summaries of the form before, which had the values of each point and not which run they were of."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from harness.outcomes import Failure, Outcome
from harness.plan import Variant
from harness.rows import Row
from harness.run import Run

# A mark that not all runs of a point have, and how many do.
_MARK_OF_SOME = re.compile(r"^(.*) \((\d+) of \d+\)$")


def is_older(summary: Mapping[str, Any]) -> bool:
    """Whether a summary has that form."""
    return bool(summary["format"] == 1)


def variant_of(summary: Mapping[str, Any]) -> Variant:
    """The plan that was measured; written alike in both forms."""
    plan = summary["plan"]
    return Variant(
        summary["variant"],
        tuple(plan["stores"]),
        tuple(plan["phases"]),
        plan["repetitions"],
        MappingProxyType({axis: tuple(levels) for axis, levels in plan["axes"].items()}),
        MappingProxyType(plan["parameters"]),
        tuple(plan["left_out"]),
    )


def outcomes_of_older(summary: Mapping[str, Any], planned: Sequence[Run], began_utc: str) -> dict[str, Outcome]:
    """Its values, distributed over the runs that were planned. When a run began is not known, and which of a point's
    values have a mark that not all have."""
    rows: dict[str, list[Row]] = {run.id: [] for run in planned}
    failures: dict[str, list[Failure]] = {run.id: [] for run in planned}
    for point in summary["points"]:
        measuring = [run for run in planned if run.store == point["store"] and point["levels"] in run.points()]
        found = _rows(point)
        for number, row in enumerate(found):
            rows[measuring[number * len(measuring) // len(found)].id].append(row)
        failures[measuring[0].id] += [
            Failure(of["step"], of["reason"], tuple(of["log"]), (point["levels"],)) for of in point["failures"]
        ]
    return {
        run.id: Outcome(
            run.id, run.store, run.repetition, began_utc, 0.0, (), tuple(rows[run.id]), tuple(failures[run.id])
        )
        for run in planned
        if rows[run.id] or failures[run.id]
    }


def _rows(point: Mapping[str, Any]) -> list[Row]:
    """As many rows as the metric with the most values has of them."""
    values = {name: of["values"] for name, of in point["values"].items()}
    return [
        Row(
            point["levels"],
            {name: of[number] for name, of in values.items() if number < len(of)},
            (0.0, 0.0),
            point["ceiling_per_s"],
            tuple(filter(None, (_mark_of(number, mark) for mark in point["marks"]))),
        )
        for number in range(max(map(len, values.values()), default=0))
    ]


def _mark_of(number: int, mark: str) -> str | None:
    """The mark as a point's row of this number has it; None where it has not."""
    of_some = _MARK_OF_SOME.match(mark)
    if of_some is None:
        return mark
    return of_some[1] if number < int(of_some[2]) else None
