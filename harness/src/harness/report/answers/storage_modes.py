"""Which storage modes do most, at which number of clients, and what clients notice of a change."""

import itertools

from harness.experiments.storage_modes import plain
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, best, by_level, joined, measured, median, said, times, unknown
from harness.report.answers.ycsb import late_of
from harness.report.figures.storage_modes import RATE, data_name
from harness.report.names import level_name, store_name
from harness.results import Point, Results, grouped


def answer(results: Results) -> Answer:
    """By clients, or where modes change in flight one after the other."""
    points = measured(results.points(), RATE)
    if not points:
        return NOTHING
    return _in_flight(results, points) if results.variant.parameters["stage_seconds"] else _by_clients(results, points)


def _by_clients(results: Results, points: list[Point]) -> Answer:
    """Of each size what each of the modes does with fewest and with most clients, that which does most first."""
    parts, shown = [], []
    for data, of in grouped(points, data_name).items():
        curves = [
            by_level(curve, "threads", RATE) for curve in grouped(of, lambda point: str(point.levels["modes"])).values()
        ]
        curves.sort(key=lambda curve: -(median(curve[-1], RATE) or 0.0))
        clients = sorted({int(point.levels["threads"]) for point in of})
        told = joined([_told_from_to(curve) for curve in curves])
        parts.append(f"{data}, with {clients[0]} to {level_name('threads', clients[-1])}: {told}")
        for curve in curves:
            most = best(curve, RATE)
            name = f"{data}: {_modes(most)}, {level_name('threads', most.levels['threads'])}"
            shown.append(Shown(name, most, RATE, late_of(most)))
    return Answer(f"{'. '.join(parts)}.", shown, _no_figure(results))


def _told_from_to(curve: list[Point]) -> str:
    """What a table does with fewest and with most clients, and what of it is in memory then."""
    fewest, most = said(curve[0], RATE, "1/s"), said(curve[-1], RATE, "1/s")
    return f"{_modes(curve[-1])} {fewest} to {most}{_held(curve[-1])}"


def _in_flight(results: Results, points: list[Point]) -> Answer:
    """Of each size and number of clients what the modes do one after the other, and right after each change."""
    parts, shown = [], []
    for title, of in grouped(
        points, lambda point: f"{data_name(point)}, {level_name('threads', point.levels['threads'])}"
    ).items():
        told = joined([_told(point) for point in of])
        changed = [point for point in of if median(point, "after_per_s") is not None]
        parts.append(f"{title}: {told}{_noticed(of, changed)}")
        for point in of:
            shown.append(Shown(f"{title}: {store_name(str(point.levels['modes']))}", point, RATE, late_of(point)))
            if point in changed:
                shown.append(Shown("right after the change to it", point, "after_per_s"))
    return Answer(f"{'; '.join(parts)}.", shown, _no_figure(results))


def _told(point: Point) -> str:
    """What a table does with some modes, and what of it is in memory then."""
    return f"{_modes(point)} {said(point, RATE, '1/s')}{_held(point)}"


def _modes(point: Point) -> str:
    return store_name(str(point.levels["modes"]))


def _held(point: Point) -> str:
    """What of a table is in memory, in brackets."""
    parts = [
        f"{share:.0%} of {name}"
        for name in ("keys", "values")
        if (share := median(point, f"{name}_in_memory")) is not None
    ]
    return f" (in memory {', '.join(parts)})" if parts else ""


def _noticed(of: list[Point], changed: list[Point]) -> str:
    """The least that was done right after a change, held against the lower one of both modes."""
    if not changed:
        return ""
    left = {}
    for before, point in itertools.pairwise(of):
        if point in changed:
            lower = min(median(before, RATE) or 0.0, median(point, RATE) or 0.0)
            left[str(point.levels["modes"])] = (median(point, "after_per_s") or 0.0) / (lower or 1.0)
    if not left:
        return ""
    worst = min(left, key=lambda name: left[name])
    return f"; right after a change at least {times(left[worst])} the lower of both, to {store_name(plain(worst))}"


def _no_figure(results: Results) -> Finding:
    return unknown(results.campaign.source, "the source has no figure for this store on this hardware")
