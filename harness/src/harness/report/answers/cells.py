"""What the answers about cells over Cassandra share."""

from collections.abc import Sequence

from harness.report.answer import Shown
from harness.report.answers.common import median
from harness.report.names import point_name, store_name
from harness.results import Point, Results, grouped

RATE = "operations_per_s"
KINDS = {"writeonly": "insert", "sensor": "insert"}


def late_of(point: Point) -> str:
    """The 99th percentile of what a cell does: of an open loop where there was one, since clients that wait for each
    answer ask less often while it is late."""
    kind = KINDS.get(str(point.levels["workload"]), "read")
    opened = f"open_{kind}_p99_us"
    return opened if median(point, opened) is not None else f"{kind}_p99_us"


def shown_of(results: Results, points: Sequence[Point]) -> list[Shown]:
    """Throughput of each, with a 99th percentile beside."""
    return [Shown(point_name(results, of), of, RATE, late_of(of)) for of in points]


def by_engine(points: Sequence[Point]) -> dict[str, list[Point]]:
    """The points by what holds their table."""
    return grouped(points, lambda point: store_name(str(point.levels["engine"])))


def change(ratio: float) -> str:
    """What is gained or lost: "−28 %"."""
    return f"{100 * (ratio - 1):+.0f} %".replace("-", "−")


def capital(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]
