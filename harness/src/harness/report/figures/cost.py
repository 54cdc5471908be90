"""What a requirement costs on SSD, by what it costs in memory."""

from collections.abc import Sequence

from harness.report.figure import Figure, point_series
from harness.report.names import point_name
from harness.results import Results, grouped


def figures(results: Results) -> Sequence[Figure]:
    """For each size of values the price over the data, a line for each rate."""
    drawn = []
    sizes = grouped(results.points(), lambda point: f"{point.levels['value_bytes']} bytes")
    for size, points in sizes.items():
        rates = grouped(points, lambda point: point_name(results, point, without=("data_gb", "value_bytes")))
        drawn.append(
            Figure(
                f"Values on SSD by all in memory, values of {size}",
                "Below 1 the SSD is cheaper. Prices: "
                + ", ".join(f"{name} {value}" for name, value in results.variant.parameters.items() if "usd" in name),
                "data, GB",
                "USD on SSD by USD in memory",
                tuple(point_series(rate, of, "data_gb", "ssd_to_memory_usd") for rate, of in rates.items()),
                x_log=True,
                y_log=True,
                level=(1.0, "as dear as memory"),
            )
        )
    return drawn
