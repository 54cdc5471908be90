"""What further replicas cost, at a level of so many answers and at one of all."""

from collections.abc import Sequence

from harness.report.answer import Answer, Finding
from harness.report.answers.cells import RATE, by_engine, capital, change, shown_of
from harness.report.answers.common import GAIN_FRACTION, by_level, joined, judged, median, said
from harness.report.names import level_name
from harness.results import Point, Results, grouped

SAYS = "inserts at THREE are the same with any number of replicas, at ALL they fall, and reads fall at both"
# Of which the paper says that it stays.
STAYS = (level_name("workload", "writeonly"), "THREE")


def answer(results: Results, points: Sequence[Point]) -> Answer:
    """Of each engine, kind and level, throughput with the fewest replicas and with the most."""
    # By kind and level what is left with the most replicas, of each engine.
    left: dict[tuple[str, str], list[float]] = {}
    parts = []
    for workload, of_kind in grouped(points, lambda point: level_name("workload", point.levels["workload"])).items():
        for level, of in grouped(of_kind, lambda point: str(point.levels["level"])).items():
            told = []
            for engine, cells in by_engine(of).items():
                curve = by_level(cells, "replication", RATE)
                first, last = curve[0], curve[-1]
                ratio = (median(last, RATE) or 0.0) / (median(first, RATE) or 1.0)
                left.setdefault((workload, level), []).append(ratio)
                told.append(
                    f"{engine} {said(first, RATE, '1/s')} with {first.levels['replication']} replicas and "
                    f"{said(last, RATE, '1/s')} with {last.levels['replication']} ({change(ratio)})"
                )
            parts.append(f"{workload} at {level}: {joined(told)}")
    return Answer(f"{capital('; '.join(parts))}.", shown_of(results, points), _finding(points, left))


def _finding(points: Sequence[Point], left: dict[tuple[str, str], list[float]]) -> Finding:
    changes = [
        f"{workload} at {level} {' to '.join(dict.fromkeys(map(change, (min(of), max(of)))))}"
        for (workload, level), of in left.items()
    ]
    return judged(SAYS, points, f"with the most replicas {joined(changes)}", lambda: all(map(_as_said, left.items())))


def _as_said(of: tuple[tuple[str, str], list[float]]) -> bool:
    what, ratios = of
    if what == STAYS:
        return all(abs(ratio - 1) <= GAIN_FRACTION for ratio in ratios)
    return all(ratio < 1 for ratio in ratios)
