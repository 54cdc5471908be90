"""What each further node gains, and what clients notice of its joining."""

from harness.report.answer import Answer, Shown
from harness.report.answers.common import NOTHING, by_level, joined, median, said, times, unknown
from harness.report.names import level_name, store_name
from harness.report.quantities import quantity
from harness.results import Point, Results, grouped

RATE = "operations_per_s"


def answer(results: Results) -> Answer:
    """Throughput by nodes, and how long each took to join; where requests come at a rate of their own, how late they
    are."""
    if results.variant.parameters.get("target_per_s"):
        return _at_a_rate(results)
    parts, shown = [], []
    for engine, points in grouped(results.points(), lambda point: str(point.levels["engine"])).items():
        curve = by_level(points, "nodes", RATE)
        if not curve:
            continue
        first, last = curve[0], curve[-1]
        gain = (median(last, RATE) or 0.0) / (median(first, RATE) or 1.0)
        joins = [value for point in curve if (value := median(point, "join_s")) is not None]
        took = f"; a node joins in {min(joins):.0f} to {max(joins):.0f} s" if joins else ""
        parts.append(
            f"{store_name(engine)}: {joined([said(of, RATE, '1/s') for of in curve])} with "
            f"{joined([str(of.levels['nodes']) for of in curve])} nodes, so {last.levels['nodes']} give {times(gain)} "
            f"what {first.levels['nodes']} does{took}"
        )
        late = _late_of(first)
        shown += [Shown(level_name("nodes", of.levels["nodes"]), of, RATE, late) for of in curve]
        shown += [
            Shown(f"while node {of.levels['nodes']} joined", of, "joining_per_s", "joining_p99_us")
            for of in curve
            if median(of, "joining_per_s") is not None
        ]
    if not parts:
        return NOTHING
    finding = unknown(results.campaign.source, "the source names no rate")
    return Answer(f"{'; '.join(parts)}.", shown, finding)


def _at_a_rate(results: Results) -> Answer:
    """The 99th percentile with each number of nodes, and while the last of them joined."""
    parts, shown = [], []
    offered = quantity(float(results.variant.parameters["target_per_s"]), "1/s")
    for engine, points in grouped(results.points(), lambda point: str(point.levels["engine"])).items():
        curve = by_level(points, "nodes", RATE)
        late = _late_of(curve[0]) if curve else ""
        if not late:
            continue
        joining = [of for of in curve if median(of, "joining_p99_us") is not None]
        waited = joined([said(of, late, "µs") for of in curve])
        nodes = joined([str(of.levels["nodes"]) for of in curve])
        told = f"{store_name(engine)} at {offered}: the 99th percentile is {waited} with {nodes} nodes"
        if joining:
            told += f", and {joined([said(of, 'joining_p99_us', 'µs') for of in joining])} while one joins"
        parts.append(told)
        shown += [Shown(level_name("nodes", of.levels["nodes"]), of, late) for of in curve]
        shown += [Shown(f"while node {of.levels['nodes']} joined", of, "joining_p99_us") for of in joining]
    if not parts:
        return NOTHING
    return Answer(f"{'; '.join(parts)}.", shown, unknown(results.campaign.source, "the source names no rate"))


def _late_of(point: Point) -> str:
    return next((name for name in ("read_p99_us", "insert_p99_us") if median(point, name) is not None), "")
