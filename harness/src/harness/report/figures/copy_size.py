"""Gets out of memory against the bytes copied, beside gets from the device."""

from collections.abc import Sequence

from harness import published
from harness.report.figure import Figure, Look, Series, known_marks, point_series
from harness.report.names import point_name
from harness.results import Results, grouped


def figures(results: Results) -> Sequence[Figure]:
    """The rates, and the device's by memory's."""
    points = results.points()
    by_depth = grouped(points, lambda point: point_name(results, point, without=("copy_bytes",)))
    own = [point_series(f"aiodb, {name}", of, "copy_bytes", "gets_per_s") for name, of in by_depth.items()]
    memory = point_series(
        "LMDB in memory", next(iter(by_depth.values())), "copy_bytes", "lmdb_gets_per_s", store="lmdb"
    )
    paper = known_marks((float(copied), rate) for copied, rate in published.AIODB_LMDB_PER_S.items())
    ceilings = []
    for name, of in by_depth.items():
        line = known_marks((float(point.levels["copy_bytes"]), point.ceiling_per_s()) for point in of)
        ceilings.append(Series(f"the device, {name}", line, Look.CEILING))
    return [
        Figure(
            "Gets per second against the bytes copied",
            "The paper's thesis: above some size, copying out of memory is no faster than reading from an SSD. "
            f"Dotted: the paper ({published.AIODB_HARDWARE}).",
            "bytes copied from each value",
            "gets/s",
            (memory, *own, *ceilings, Series("LMDB in the paper", paper, Look.PUBLISHED)),
            y_log=True,
        ),
        Figure(
            "aiodb by LMDB in memory",
            "Where a line reaches 1, memory gives no more than the device.",
            "bytes copied from each value",
            "gets/s by gets/s",
            tuple(point_series(name, of, "copy_bytes", "ratio") for name, of in by_depth.items()),
            level=(1.0, "as fast as memory"),
        ),
    ]
