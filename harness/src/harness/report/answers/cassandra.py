"""Cells over Cassandra: what further nodes, clients, levels and entry nodes do to throughput. Which of these a campaign
asks follows from its axes."""

from collections.abc import Mapping, Sequence

from harness import published
from harness.report.answer import Answer, Finding
from harness.report.answers import execution, replicas
from harness.report.answers.cells import RATE, by_engine, capital, change, late_of, shown_of
from harness.report.answers.common import (
    NOTHING,
    by_level,
    distinct,
    find,
    grows_until,
    joined,
    judged,
    measured,
    median,
    said,
    times,
    unknown,
)
from harness.report.names import level_name, levels_name, point_name, varying
from harness.report.quantities import digits, quantity
from harness.results import Point, Results, grouped
from harness.rows import DIED

# With fewer levels there is no curve.
LEAST_CURVE = 3
_READS = level_name("workload", "readonly")


def answer(results: Results) -> Answer:
    """By the axis that the campaign is about."""
    points = measured(results.points(), RATE)
    if not points:
        return NOTHING
    axes = varying(results)
    if "replication" in axes:
        return replicas.answer(results, points)
    if "level" in axes:
        return _levels(results, points)
    if "entry" in axes:
        return _entries(results, points)
    if "nodes" in axes:
        return _nodes(results, points)
    if "threads" in axes:
        timed = measured(points, execution.SECONDS)
        return execution.answer(results, timed) if timed else _clients(results, points)
    return _engines(results, points)


def _levels(results: Results, points: list[Point]) -> Answer:
    parts: list[str] = []
    weakest, strongest = (str(results.variant.axes["level"][of]) for of in (0, -1))
    # By engine and kind: what is left at the last level of the throughput at the first.
    left: dict[str, dict[str, float]] = {}
    for workload, of in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        told = []
        for engine, cells in by_engine(of).items():
            weak, strong = find(cells, level=weakest), find(cells, level=strongest)
            rates = f"{engine} {said(weak, RATE, '1/s')} at {weakest} and {said(strong, RATE, '1/s')} at {strongest}"
            if weak and strong:
                part = (median(strong, RATE) or 0.0) / (median(weak, RATE) or 1.0)
                left.setdefault(engine, {})[workload] = part
                rates += f" ({change(part)})"
            told.append(rates)
        parts.append(f"{workload}: {joined(told)}")
    finding = _of_levels(left, points, f"by {weakest}, {strongest}")
    ends = [point for point in points if point.levels["level"] in (weakest, strongest)]
    return Answer(f"{capital('; '.join(parts))}.", shown_of(results, ends), finding)


def _of_levels(left: Mapping[str, Mapping[str, float]], points: Sequence[Point], ends: str) -> Finding:
    """Clients here wait for each answer: what they do less is what they wait longer."""
    says = "a stronger level costs throughput and latency, for reads most"
    parts = [part for of in left.values() for part in of.values()]
    if not parts or not all(_READS in of and len(of) > 1 for of in left.values()):
        return unknown(says, "no engine has reads and writes at the weakest level and at the strongest")
    kinds = _changes(left)
    return judged(
        says,
        points,
        f"{ends} changes {joined([f'{kind} by {_range(changes)} %' for kind, changes in kinds.items()])}",
        lambda: (
            all(part < 1 for part in parts) and all(min(of, key=lambda it: of[it]) == _READS for of in left.values())
        ),
    )


def _changes(left: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """By kind what each engine gains or loses, in percent."""
    changes: dict[str, list[float]] = {}
    for of in left.values():
        for kind, part in of.items():
            changes.setdefault(kind, []).append(100 * (part - 1))
    return changes


def _range(values: Sequence[float]) -> str:
    return f"{min(values):+.0f} to {max(values):+.0f}".replace("-", "−")


def _entries(results: Results, points: list[Point]) -> Answer:
    parts = []
    for engine, of in by_engine(points).items():
        told = []
        for entry, cells in grouped(of, lambda point: str(point.levels["entry"])).items():
            curve = by_level(cells, "threads", RATE)
            rates = " and ".join(said(point, RATE, "1/s") for point in curve)
            told.append(f"{rates} {level_name('entry', entry)}")
        parts.append(f"{engine}: {joined(told)}")
    clients = joined([str(of) for of in results.variant.axes["threads"]])
    most = published.IN_MEMORY_PER_S["okuyama"]
    finding = unknown(
        f"okuyama: {most[1]:,.0f} inserts/s by {most[0]} clients, and through one entry node its processor is used up",
        "the nodes share one processor and none has a limit of its own, so no node's processor is seen to be used up",
    )
    return Answer(f"With {clients} clients: {'; '.join(parts)}.", shown_of(results, points), finding)


def _nodes(results: Results, points: list[Point]) -> Answer:
    clients = max(int(of.levels["threads"]) for of in points)
    parts, gains = [], []
    cells = [of for of in points if of.levels["threads"] == clients]
    for engine, of in by_engine(cells).items():
        curve = by_level(of, "nodes", RATE)
        first, last = curve[0], curve[-1]
        gain = (median(last, RATE) or 0.0) / (median(first, RATE) or 1.0)
        gains.append(gain)
        parts.append(
            f"{engine} does {said(first, RATE, '1/s')} on {level_name('nodes', first.levels['nodes'])} and "
            f"{said(last, RATE, '1/s')} on {last.levels['nodes']} ({times(gain)} as much)"
        )
    theirs = joined([f"{name} {rate:,.0f}" for name, (_, rate) in published.ON_DISK_PER_S.items()])
    finding = judged(
        f"durable inserts are about the same at any number of clients ({theirs}/s on 4 nodes), and grow with nodes",
        points,
        f"{times(min(gains))} to {times(max(gains))} as much with the most nodes",
        lambda: min(gains) > 1.1,
    )
    # With two counts of nodes their figure is no curve: then that over clients, two figures on, says more.
    by_clients = len(results.variant.axes["nodes"]) < LEAST_CURVE and "threads" in varying(results)
    shown = [of for of in points if int(of.levels["threads"]) in (clients, min(results.variant.axes["threads"]))]
    return Answer(
        f"By {clients} clients, {joined(parts)}.", shown_of(results, shown), finding, figure=2 if by_clients else 0
    )


def _clients(results: Results, points: list[Point]) -> Answer:
    parts, told, stops = [], [], []
    for workload, of in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        ends = []
        for name, cells in grouped(of, lambda point: point_name(results, point, ("threads", "workload"))).items():
            curve = by_level(cells, "threads", RATE)
            enough = grows_until(curve, RATE)
            ends.append(f"up to {enough.levels['threads']} clients on {name} ({said(enough, RATE, '1/s')})")
            stops.append(enough is not curve[-1])
            told += [enough, curve[-1]]
        parts.append(f"{workload} grow {joined(ends)}")
    most = max(int(of.levels["threads"]) for of in points)
    late = [value for of in points if of.levels["threads"] == most and (value := median(of, late_of(of))) is not None]
    waits = ""
    if late:
        waits = (
            f"; with {most} clients the 99th percentile is {quantity(min(late), 'µs')} to {quantity(max(late), 'µs')}"
        )
    finding = judged(
        "throughput grows with the clients until the node is used up; more of them only wait longer",
        points,
        f"{sum(stops)} of {len(stops)} curves stop growing before {most} clients",
        lambda: all(stops),
    )
    return Answer(f"{capital('; '.join(parts))}{waits}.", shown_of(results, distinct(told)), finding)


def _engines(results: Results, points: list[Point]) -> Answer:
    parts = []
    for point in points:
        name = levels_name(point.levels, [axis for axis in varying(results) if axis != "workload"])
        row = point.rows[0]
        dead = any(mark.startswith(DIED) for mark in row.marks)
        rates = [rate for _, rate in row.series]
        parts.append(
            f"{name} does {said(point, RATE, '1/s')}"
            + (f" ({digits(max(rates) / 1e3)} to {digits(min(rates) / 1e3)} K/s in single seconds)" if rates else "")
            + (", and dies" if dead else "")
        )
    finding = judged(
        "inserts fall a hundredfold once memory is used up, or the process dies",
        points,
        joined(parts),
        lambda: any(any(mark.startswith(DIED) for mark in of.rows[0].marks) for of in points),
    )
    over_time = 2 if any(of.rows[0].series for of in points) else 0
    return Answer(f"By {_who(points)}, {joined(parts)}.", shown_of(results, points), finding, figure=over_time)


def _who(points: Sequence[Point]) -> str:
    return level_name("threads", points[0].levels["threads"])
