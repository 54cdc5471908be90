"""Whether a campaign's figures may be quoted, in words, and why not."""

from collections.abc import Iterable
from pathlib import Path

from harness.results import Point, Results
from harness.rows import Metric
from harness.statistics import LEAST_VALUES, SUFFICIENT_FRACTION

QUOTABLE = "quotable"


def verdict_of(results: Results) -> tuple[str, str]:
    """Whether the figures may be quoted, with the reasons, and how good that is: `good`, `warn`, `bad`."""
    points, metrics = results.points(), results.campaign.experiment.metrics
    measured = [point for point in points if point.rows]
    failed = sum(1 for point in points if point.failures)
    unmeasured = sum(1 for point in points if not point.rows and not point.failures)
    seldom = [point for point in measured if point.repetitions(metrics) < LEAST_VALUES]
    once = sum(1 for point in measured if point.repetitions(metrics) <= 1)
    wide = sum(1 for point in measured if point not in seldom and not is_sufficient(point, metrics))
    doubtful = sum(1 for point in points if point.doubts())
    total = len(points)
    said = [
        f"{failed} of {total} points failed" if failed else "",
        f"{unmeasured} of {total} not measured yet" if unmeasured else "",
        f"{_of_all(once, total)} measured once" if once else "",
        f"{_of_all(len(seldom) - once, total)} measured fewer than {LEAST_VALUES} times" if len(seldom) > once else "",
        f"{_of_all(wide, total)} with an interval over {SUFFICIENT_FRACTION:.0%}" if wide else "",
        f"{_of_all(doubtful, total)} {_kinds(points)}" if doubtful else "",
    ]
    words = ", ".join(filter(None, said))
    good = sum(1 for point in points if not reasons(point, metrics))
    if words:
        much = f"{good} of {total} points quotable" if good else "not quotable"
        return f"{much}: {words}", "bad" if failed else "warn"
    return f"{QUOTABLE}: every interval within {SUFFICIENT_FRACTION:.0%}", "good"


def _of_all(count: int, total: int) -> str:
    return f"each of {total} points" if count == total else f"{count} of {total} points"


def _kinds(points: Iterable[Point]) -> str:
    """What makes points doubtful, each word once."""
    words = dict.fromkeys(doubt.partition(" (")[0] for point in points for doubt in point.doubts())
    return " or ".join(filter(None, [", ".join(list(words)[:-1]), list(words)[-1]])) if words else ""


def is_sufficient(point: Point, metrics: Iterable[Metric]) -> bool:
    """Whether every main metric of a point has a narrow enough interval."""
    summaries = [point.summary(metric.name) for metric in metrics if metric.decides(point.levels)]
    return all(summary is not None and summary.sufficient for summary in summaries)


def reasons(point: Point, metrics: Iterable[Metric]) -> list[str]:
    """Why a point is not to be quoted; none if it may be."""
    metrics = list(metrics)
    said = point.doubts()
    repetitions = point.repetitions(metrics)
    if point.failures:
        said.append(f"failed in {len(point.failures)} runs")
    if not point.rows:
        return said if point.failures else ["not measured yet"]
    if repetitions < LEAST_VALUES:
        said.append("measured once" if repetitions <= 1 else f"measured {repetitions} times")
    elif not is_sufficient(point, metrics):
        said.append("wide interval")
    return said


def below(checkout: Path, text: str) -> str:
    """A text in which every path below the checkout begins there: a command is repeated in another checkout."""
    return text.replace(f"{checkout}/", "")
