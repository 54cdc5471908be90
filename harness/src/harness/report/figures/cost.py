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
                f"Below 1 the SSD is cheaper. {_prices(results)}",
                "data, GB",
                "USD on SSD by USD in memory",
                tuple(point_series(rate, of, "data_gb", "ssd_to_memory_usd") for rate, of in rates.items()),
                x_log=True,
                y_log=True,
                level=(1.0, "as dear as memory"),
            )
        )
    return drawn


def _prices(results: Results) -> str:
    """What the campaign's file assumes."""
    usd = {name: float(of) for name, of in results.variant.parameters.items() if "usd" in name}
    return (
        f"Assumed: {usd['dram_usd_per_gb']:g} USD for a GB of memory, {usd['ssd_usd_per_gb']:g} for one of SSD, "
        f"{usd['node_usd']:,.0f} for a node."
    )
