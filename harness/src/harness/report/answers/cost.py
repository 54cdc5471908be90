"""Where values on SSD are cheaper than all in memory."""

from harness.report.answer import Answer, Shown
from harness.report.answers.common import NOTHING, by_level, joined, judged, median
from harness.report.names import level_name
from harness.report.quantities import digits
from harness.results import Results, grouped

METRIC = "ssd_to_memory_usd"


def answer(results: Results) -> Answer:
    """For each rate the least data from which on the SSD is cheaper, of the largest values."""
    sizes = [int(size) for size in results.variant.axes["value_bytes"]]
    points = [point for point in results.points() if point.levels["value_bytes"] == sizes[-1]]
    said, shown, used = [], [], []
    for rate, of in grouped(points, lambda point: level_name("gets_per_s", point.levels["gets_per_s"])).items():
        curve = by_level(of, "data_gb", METRIC)
        if not curve:
            continue
        cheaper = [point for point in curve if (median(point, METRIC) or 9.0) < 1]
        told = cheaper[0] if cheaper else curve[-1]
        ratio, size = digits(median(told, METRIC) or 0.0), level_name("data_gb", told.levels["data_gb"])
        said.append(
            f"for {rate} from {size} on ({ratio} of the price in memory)"
            if cheaper
            else f"for {rate} at no size up to {size} ({ratio})"
        )
        shown += [Shown(f"{rate}, {level_name('data_gb', point.levels['data_gb'])}", point, METRIC) for point in curve]
        used.append(told)
    if not said:
        return NOTHING
    finding = judged(
        "values on SSD, read asynchronously, are the cheaper way to a rate",
        used,
        f"{joined(said)}, at the prices of the campaign's file",
        lambda: all((median(point, METRIC) or 9.0) < 1 for point in used),
    )
    return Answer(
        f"Of values of {sizes[-1]:,} bytes, SSD is cheaper {joined(said)}.", shown, finding, figure=len(sizes) - 1
    )
