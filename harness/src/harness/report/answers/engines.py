"""What puts, gets and overwrites cost on each engine behind Cassandra."""

from harness import published
from harness.report.answer import Answer, Finding, Shown
from harness.report.answers.common import NOTHING, find, joined, judged, measured, median, times, unknown
from harness.report.names import store_name
from harness.report.quantities import digits
from harness.results import Point, Results, grouped

SECONDS = "seconds"
NAMES = {"put": "puts", "get": "gets", "overwrite": "overwrites", "read": "reads of what was overwritten"}


def answer(results: Results) -> Answer:
    """For the largest N the seconds of each test, from the fastest engine to the slowest."""
    rows = int(results.variant.axes["rows"][-1])
    points = [point for point in measured(results.points(), SECONDS) if point.levels["rows"] == rows]
    if not points:
        return NOTHING
    parts, shown, slowest = [], [], []
    for test, of in grouped(points, lambda point: str(point.levels["test"])).items():
        ordered = sorted(of, key=lambda point: median(point, SECONDS) or 0.0)
        least, most = ordered[0], ordered[-1]
        ends = median(least, SECONDS) or 1.0, median(most, SECONDS) or 0.0
        parts.append(f"{digits(ends[0])} to {digits(ends[1])} s for {NAMES[test]}")
        slowest.append((most.store, ends[1] / ends[0] - 1))
        shown += [Shown(f"{test}, {store_name(point.store)}", point, SECONDS) for point in of]
    last = joined(list(dict.fromkeys(store_name(store) for store, _ in slowest)))
    sentence = (
        f"With {rows:,} rows one client waits {joined(parts)}: the slowest, {last}, takes at most "
        f"{max(more for _, more in slowest):.0%} more than the fastest."
    )
    return Answer(sentence, shown, _finding(points, rows))


def _finding(points: list[Point], rows: int) -> Finding:
    """The blog: a node without a memtable puts three times as slowly, and its own engine as fast as a memtable."""
    theirs = published.MYCASSANDRA_SECONDS["put"]
    slow = theirs["Cassandra, none"].get(rows, 0.0) / theirs["Cassandra, 128 MB"].get(rows, 1.0)
    says = "another engine below Cassandra costs nothing, and a node without a memtable takes longer"
    if slow:
        says += f": {times(slow)} as long for {rows:,} puts"
    large, small = find(points, test="put", store="stock-128"), find(points, test="put", store="stock-4")
    own = find(points, test="put", store="aiodb")
    if large is None or small is None or own is None:
        return unknown(says, "puts were not measured with a small and a large memtable and aiodb")
    base = median(large, SECONDS) or 1.0
    ratios = {name: (median(of, SECONDS) or 0.0) / base for name, of in (("4 MB", small), ("aiodb", own))}
    why = (
        f"by puts with 128 MB, a memtable of 4 MB takes {times(ratios['4 MB'])} as long, and aiodb "
        f"{times(ratios['aiodb'])}"
    )
    return judged(says, [large, small, own], why, lambda: ratios["aiodb"] <= 1.1 and ratios["4 MB"] > 1.1)
