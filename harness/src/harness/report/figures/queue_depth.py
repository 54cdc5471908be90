"""Gets against the number of gets in flight, beside what the device gives."""

from collections.abc import Mapping, Sequence

from harness import published
from harness.report.figure import Figure, Look, Series, known_marks, point_series
from harness.report.figures.scaling import law_figures
from harness.report.names import level_name, point_name
from harness.results import Point, Results, grouped


def figures(results: Results) -> Sequence[Figure]:
    """For each number of threads the part of the device's rate, the rate and its latency, and what a law says."""
    drawn = []
    threads_of = grouped(results.points(), lambda point: level_name("threads", point.levels["threads"]))
    for threads, points in threads_of.items():
        place = f", {threads.replace('client', 'thread')}" if len(threads_of) > 1 else ""
        named = grouped(points, lambda point: point_name(results, point, without=("depth", "threads")))
        drawn.append(
            Figure(
                f"Part of the device's rate{place}",
                "Both measured in the same rounds, so that a disk that drifts does not show. The paper reached "
                f"{published.AIODB_PER_S[1024] / published.AIODB_FIO_PER_S:.3f} with 1024 in flight.",
                "gets in flight",
                "gets/s by the device's reads/s",
                tuple(point_series(name, of, "depth", "ratio") for name, of in named.items()),
                x_log=True,
                level=(1.0, "the device"),
            )
        )
        drawn.append(
            Figure(
                f"Gets per second{place}",
                "Dashed: what the device gives without a store. Dotted: the paper, on other hardware "
                f"({published.AIODB_HARDWARE}); compare shapes, not heights.",
                "gets in flight",
                "gets/s",
                (*_rates(named), *_published_series()),
                x_log=True,
                y_log=True,
            )
        )
        drawn.append(
            Figure(
                f"Latency, 99th percentile{place}",
                "From submit to poll.",
                "gets in flight",
                "µs",
                tuple(point_series(name, of, "depth", "p99_us") for name, of in named.items()),
                x_log=True,
                y_log=True,
            )
        )
        drawn += law_figures(f"Gets per second{place}", named, "depth", "gets_per_s")
    return drawn


def _rates(named: Mapping[str, Sequence[Point]]) -> list[Series]:
    series = []
    for name, of in named.items():
        series.append(point_series(name, of, "depth", "gets_per_s"))
        ceilings = known_marks((float(point.levels["depth"]), point.ceiling_per_s()) for point in of)
        beside = f"the device, beside {name}" if len(named) > 1 else "the device"
        series.append(Series(beside, ceilings, Look.CEILING))
    return series


def _published_series() -> list[Series]:
    own = known_marks((float(depth), rate) for depth, rate in published.AIODB_PER_S.items())
    fio = known_marks((depth, published.AIODB_FIO_PER_S) for depth in (64.0, 1024.0))
    return [Series("AIODB in the paper", own, Look.PUBLISHED), Series("fio in the paper", fio, Look.PUBLISHED)]
