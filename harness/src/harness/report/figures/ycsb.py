"""YCSB's workloads: throughput and latency of each store."""

from collections.abc import Callable, Sequence

from harness.experiments import client
from harness.fields import Value
from harness.report.figure import (
    Figure,
    Look,
    Series,
    category_series,
    flat_note,
    known_marks,
    mark_of,
    percentile_figures,
    point_series,
)
from harness.report.figures.scaling import law_figures
from harness.report.names import level_name, point_name, store_name
from harness.results import Point, Results, grouped


def figures(results: Results) -> Sequence[Figure]:
    """Over threads where these vary, else by workload."""
    if len(results.variant.axes["threads"]) > 1:
        return _over_threads(results)
    return [
        _bars(results),
        _late(results),
        *percentile_figures(results.points(), lambda point: _letter(point.levels["workload"]), _series_name(results)),
    ]


def _over_threads(results: Results) -> list[Figure]:
    """For each workload throughput and latency over client threads, and what a law says of them."""
    drawn = []
    for workload, points in grouped(results.points(), lambda point: _letter(point.levels["workload"])).items():
        stores = grouped(points, lambda point: store_name(point.store))
        rates = [point_series(name, of, "threads", "operations_per_s") for name, of in stores.items()]
        known = [(float(point.levels["threads"]), point.ceiling_per_s()) for point in points]
        if device := known_marks(sorted(known)):
            rates.append(Series("the device, as many reads of 4 KiB in flight", device, Look.CEILING))
        kinds = [kind.lower() for kind in client.KINDS if any(of.summary(f"{kind.lower()}_p99_us") for of in points)]
        late = [
            point_series(f"{name}, {kind}", of, "threads", f"{kind}_p99_us")
            for name, of in stores.items()
            for kind in kinds
        ]
        note, axis = flat_note(results), "clients"
        drawn += [
            Figure(f"{workload}: throughput", note, axis, "operations/s", tuple(rates), x_log=True),
            Figure(f"{workload}: 99th percentile", note, axis, "µs", tuple(late), x_log=True, y_log=True),
            *law_figures(workload, stores),
        ]
    return drawn


def _bars(results: Results) -> Figure:
    """Throughput: over each workload a mark for each store and number of threads."""
    workloads = [str(workload) for workload in results.variant.axes["workload"]]
    named = grouped(results.points(), _series_name(results))
    series = [
        category_series(name, points, "workload", workloads, "operations_per_s") for name, points in named.items()
    ]
    series += _device_series(results, workloads)
    names = tuple(map(_letter, workloads))
    return Figure("Throughput", flat_note(results), "", "operations/s", tuple(series), y_log=True, categories=names)


def _late(results: Results) -> Figure:
    """The 99th percentile of each kind of operation of each workload."""
    points = results.points()
    shown = [
        (str(workload), kind)
        for workload in results.variant.axes["workload"]
        for kind in map(str.lower, client.KINDS)
        if any(point.levels["workload"] == workload and point.summary(f"{kind}_p99_us") for point in points)
    ]
    series = []
    for name, of in grouped(points, _series_name(results)).items():
        marks = []
        for position, (workload, kind) in enumerate(shown):
            found = next((point for point in of if point.levels["workload"] == workload), None)
            if found is not None and (late := mark_of(found, float(position), f"{kind}_p99_us")):
                marks.append(late)
        series.append(Series(name, tuple(marks), store=of[0].store))
    names = tuple(f"{_letter(workload).partition(',')[0]}: {kind}" for workload, kind in shown)
    return Figure("Latency, 99th percentile", flat_note(results), "", "µs", tuple(series), y_log=True, categories=names)


def _letter(workload: Value) -> str:
    return level_name("workload", workload)


def _device_series(results: Results, workloads: Sequence[str]) -> list[Series]:
    """A dash over the workloads that only read, at what the device gives."""
    series = []
    for point in results.points():
        if ceiling := point.ceiling_per_s():
            at = float(workloads.index(str(point.levels["workload"])))
            name = f"the device, {point.levels['threads']} reads of 4 KiB in flight"
            ends = known_marks((at + side, ceiling) for side in (-0.45, 0.45))
            series.append(Series(name, ends, Look.CEILING))
    return series


def _series_name(results: Results) -> Callable[[Point], str]:
    """What tells a point from others of its workload, in words."""
    return lambda point: point_name(results, point, without=("workload",))
