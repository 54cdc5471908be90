"""Figures in documents that say where they come from, against what is published. Behind a number stands
`<!-- CAMPAIGN LEVEL=VALUE ... FIELD -->`, with ` /1000` behind the field where the number is of thousands; the levels,
among them `store`, leave one point. `<!-- points -->`, `<!-- points disturbed -->` and `<!-- points once -->` count
those of all campaigns."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.disturbance import DISTURBED

CHECKOUT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "results/README.md", "docs/campaigns.md")
MARKED = re.compile(r"([0-9][0-9,.]*)<!-- (.*?) -->")

Point = Mapping[str, Any]


def points_of(campaign: str) -> list[Point]:
    summary = json.loads((CHECKOUT / "results" / campaign / "quick" / "summary.json").read_text(encoding="utf-8"))
    points: list[Point] = summary["points"]
    return points


def counted(kind: str) -> int:
    found = (CHECKOUT / "results").glob("**/summary.json")
    points = [point for path in found for point in json.loads(path.read_text(encoding="utf-8"))["points"]]
    if kind == "disturbed":
        return sum(any(mark.startswith(DISTURBED) for mark in point["marks"]) for point in points)
    if kind == "once":
        return sum(all(value["n"] == 1 for value in point["values"].values()) for point in points)
    assert not kind, f"points that are {kind}"
    return len(points)


def published(mark: str) -> float:
    """What the published results have where a mark points to."""
    name, *words = mark.split()
    if name == "points":
        return counted(" ".join(words))
    divisor = float(words.pop()[1:]) if words[-1].startswith("/") else 1.0
    field = words.pop()
    wanted = dict(word.split("=", 1) for word in words)
    found = []
    for point in points_of(name):
        levels = {"store": point["store"], **point["levels"]}
        if all(str(levels[level]) == value for level, value in wanted.items()):
            found.append(point)
    assert len(found) == 1, f"{mark}: {len(found)} points"
    return float(found[0]["values"][field]["median"]) / divisor


def agrees(printed: str, value: float) -> bool:
    """Whether a value, rounded to as many decimals as were printed, is what was printed."""
    decimals = len(printed.partition(".")[2])
    return f"{value:,.{decimals}f}" == printed


def marks(document: str) -> Iterator[tuple[str, str]]:
    text = (CHECKOUT / document).read_text(encoding="utf-8")
    for found in MARKED.finditer(text):
        yield found[1], found[2]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_marked_figures_are_those_that_are_published(document: str) -> None:
    wrong = [
        f"{printed} should be {published(mark):,.4g} ({mark})"
        for printed, mark in marks(document)
        if not agrees(printed, published(mark))
    ]
    assert not wrong, f"{document}: " + "; ".join(wrong)


def test_the_documents_have_marked_figures() -> None:
    assert len(list(marks("README.md"))) >= 20
    assert len(list(marks("results/README.md"))) >= 10


def test_a_figure_that_has_drifted_is_found() -> None:
    assert agrees("1,451", 1451.44)
    assert agrees("0.95", 0.9463)
    assert not agrees("1,200", 1451.44)
    assert not agrees("0.77", 0.7646)
