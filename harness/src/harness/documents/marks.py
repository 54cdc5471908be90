"""Numbers in prose that say where they come from. Behind a number, or a median with its least and most, stands

    1.31 (1.12 to 1.38)<!-- cassandra-limited.json workload=get per_second by=best -->
    703<!-- clients-disk nodes=1 threads=300 engine=stock operations_per_s -->

a bench's file or a campaign (with the folder above it, `faster-disk/queue-depth`), levels that leave one point, the
value, and what it is divided by: `by=best` and `by=null` within each round, `above=null` for what is more than the
ceiling, `/1000` for a number of thousands. `<!-- points -->`, `<!-- points disturbed -->` and `<!-- points once -->`
count the published points. `<!-- theirs -->` stands behind figures of others, `<!-- setting -->` behind what was chosen
and not measured."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.benches import Bench, Benches, Spread, read_bench, read_benches
from harness.disturbance import DISTURBED
from harness.errors import HarnessError
from harness.plan import Campaign
from harness.report.publication import Published, read_with_evidence
from harness.report.published_pages import best_folders
from harness.results import Point

_NUMBER = r"[0-9][0-9,]*(?:\.[0-9]+)?"
MARKED = re.compile(rf"({_NUMBER}(?:\s?\({_NUMBER}(?: to |-){_NUMBER}\))?)<!-- (?!theirs|setting|table|end)(.*?) -->")
# A rate of thousands is written to the next hundred: rounds differ by more.
_ROUGH = {"per_second": 100.0}
_LEAST_ROUGH = 1000.0


@dataclass(frozen=True)
class Sources:
    """All that figures of documents may come from."""

    checkout: Path
    campaign_of: Callable[[str], Campaign]

    @cached_property
    def published(self) -> dict[str, Published]:
        """Published results, by the names that marks have for them."""
        results = self.checkout / "results"
        return {
            name: read_with_evidence(results / folder, self.campaign_of(folder.parent.name))
            for name, folder in best_folders(results).items()
        }

    @cached_property
    def benches(self) -> Benches:
        """What the benches' files do not say of themselves."""
        return read_benches(self.checkout / "docs")

    def bench(self, name: str) -> Bench:
        """A bench's file."""
        return read_bench(self.checkout / "docs" / name)


def marks(text: str) -> Iterator[tuple[str, str]]:
    """What is printed, and where it comes from, of each mark of a text."""
    for found in MARKED.finditer(text):
        yield found[1], found[2]


def rewritten(text: str, sources: Sources) -> str:
    """The text with every marked number as it is published."""
    return MARKED.sub(lambda found: f"{corrected(found[1], found[2], sources)}<!-- {found[2]} -->", text)


def corrected(printed: str, mark: str, sources: Sources) -> str:
    """A marked number as it should be printed, with as many decimals as it has now."""
    spread = value_of(mark, sources)
    rough = next((step for metric, step in _ROUGH.items() if metric in mark.split() and "by=" not in mark), 0.0)
    values = iter((spread.median, spread.low, spread.high))
    return re.sub(_NUMBER, lambda found: _written(found[0], next(values), rough), printed)


def _written(printed: str, value: float, rough: float) -> str:
    if rough and value >= _LEAST_ROUGH:
        return f"{round(value / rough) * rough:,.0f}"
    decimals = len(printed.partition(".")[2])
    return f"{value:,.{decimals}f}"


def value_of(mark: str, sources: Sources) -> Spread:
    """What is published where a mark points to; raises HarnessError where no result has it."""
    name, *words = mark.split()
    if name == "points":
        count = float(counted(" ".join(words), sources))
        return Spread(count, count, count)
    divisor = float(words.pop()[1:]) if words and words[-1].startswith("/") else 1.0
    chosen = dict(word.split("=", 1) for word in words if "=" in word)
    plain = [word for word in words if "=" not in word]
    if len(plain) != 1:
        raise HarnessError(f"the mark `{mark}` names no single value")
    found = (_of_bench if name.endswith(".json") else _of_campaign)(name, plain[0], chosen, sources)
    return Spread(found.median / divisor, found.low / divisor, found.high / divisor)


def _of_bench(name: str, metric: str, chosen: dict[str, str], sources: Sources) -> Spread:
    bench = sources.bench(name)
    by, above = chosen.get("by"), chosen.get("above") is not None
    workload = chosen.get("workload") or bench.workloads()[0]
    if by == "best":
        return bench.by_best(workload, metric, above)
    if by:
        return bench.by_line(workload, metric, by)
    return bench.of(workload, chosen.get("line", "aiodb"), metric)


def _of_campaign(name: str, metric: str, chosen: dict[str, str], sources: Sources) -> Spread:
    published = sources.published.get(name)
    if published is None:
        raise HarnessError(f"nothing is published of {name!r}: there is {', '.join(sources.published)}")
    found = [point for point in published.results.points() if _is_at(point, chosen)]
    if len(found) != 1:
        raise HarnessError(f"{name} has {len(found)} points at {chosen}: a mark must leave one")
    if metric == "ceiling":
        ceiling = found[0].ceiling_per_s()
        if ceiling is None:
            raise HarnessError(f"{name} was not measured beside a ceiling at {chosen}")
        return Spread(ceiling, ceiling, ceiling)
    summary = found[0].summary(metric)
    if summary is None:
        raise HarnessError(f"{name} has no {metric} at {chosen}")
    return Spread(summary.median, summary.low, summary.high)


def _is_at(point: Point, chosen: dict[str, str]) -> bool:
    levels = {"store": point.store, **point.levels}
    return all(str(levels.get(level)) == value for level, value in chosen.items())


def counted(kind: str, sources: Sources) -> int:
    """How many of the published points are so."""
    points = [point for of in sources.published.values() for point in of.results.points()]
    if kind == "disturbed":
        return sum(any(mark.startswith(DISTURBED) for mark in point.marks()) for point in points)
    if kind == "once":
        return sum(len(point.runs) == 1 for point in points)
    if kind:
        raise HarnessError(f"`points {kind}` counts nothing: disturbed or once")
    return len(points)
