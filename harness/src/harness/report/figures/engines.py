"""Seconds for puts, gets and overwrites on each engine behind Cassandra."""

from collections.abc import Sequence
from types import MappingProxyType

from harness import published
from harness.experiments.engines import TITLES
from harness.report.figure import Figure, Look, Series, category_series, known_marks, point_series
from harness.report.names import store_name
from harness.results import Results, grouped

# The same in a word.
SHORT = MappingProxyType({"put": "put", "get": "get", "overwrite": "overwrite", "read": "read what was overwritten"})
# What the blog timed together only.
NOT_ALONE = ("overwrite", "read")
# With fewer counts of rows there is no curve.
LEAST_ROWS = 3


def figures(results: Results) -> Sequence[Figure]:
    """All tests at the largest N, and each over N where there are enough of them."""
    rows = [int(of) for of in results.variant.axes["rows"]]
    return [_bars(results, rows[-1]), *([] if len(rows) < LEAST_ROWS else _curves(results))]


def _bars(results: Results, rows: int) -> Figure:
    """Seconds for each test at one N, a mark for each engine. Of overwriting the blog has one figure, which includes
    reading: ours of both are added up for it."""
    tests = [str(test) for test in results.variant.axes["test"]]
    points = [point for point in results.points() if point.levels["rows"] == rows]
    series = [
        category_series(store_name(store), of, "test", tests, "seconds", store=store)
        for store, of in grouped(points, lambda point: point.store).items()
    ]
    names = tuple(f"{SHORT[test]}" for test in tests)
    return Figure(
        f"Seconds for {rows:,} rows by one client",
        "Overwriting writes each row several times. The table below marks what was flushed.",
        "",
        "s",
        tuple(series),
        categories=names,
    )


def _curves(results: Results) -> list[Figure]:
    """For each test of which the blog says something comparable, seconds against N beside the blog's."""
    drawn = []
    for test, points in grouped(results.points(), lambda point: str(point.levels["test"])).items():
        stores = grouped(points, lambda point: point.store)
        series = [point_series(store_name(name), of, "rows", "seconds", store=name) for name, of in stores.items()]
        series += [] if test in NOT_ALONE else _published(test)
        note = (
            f"Dotted: the blog, one node of 2010 ({published.MYCASSANDRA_NOTE}). Compare shapes, not heights."
            if test not in NOT_ALONE
            else "The blog has one figure for overwriting and reading together, which is none of this alone."
        )
        drawn.append(Figure(f"Seconds for {TITLES[test]}", note, "N", "s", tuple(series), x_log=True, y_log=True))
    return drawn


def _published(test: str) -> list[Series]:
    return [
        Series(f"{name}, in the blog", known_marks((float(rows), of) for rows, of in seconds.items()), Look.PUBLISHED)
        for name, seconds in published.MYCASSANDRA_SECONDS.get(test, {}).items()
    ]
