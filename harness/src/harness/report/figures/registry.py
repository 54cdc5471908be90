"""The figures of each kind of experiment by its name. A new kind is a file with a function, and its line here."""

from collections.abc import Callable, Sequence
from types import MappingProxyType

from harness.report.figure import Figure, HeatMap
from harness.report.figures import (
    cassandra,
    copy_size,
    cost,
    direct_access,
    engines,
    grow,
    memory_full,
    mixed_replicas,
    queue_depth,
    serve,
    storage_modes,
    ycsb,
)
from harness.results import Results

FIGURES: MappingProxyType[str, Callable[[Results], Sequence[Figure | HeatMap]]] = MappingProxyType(
    {
        "queue-depth": queue_depth.figures,
        "copy-size": copy_size.figures,
        "cost": cost.figures,
        "ycsb": ycsb.figures,
        "memory-full": memory_full.figures,
        "cassandra": cassandra.figures,
        "engines": engines.figures,
        "grow": grow.figures,
        "serve": serve.figures,
        "direct-access": direct_access.figures,
        "mixed-replicas": mixed_replicas.figures,
        "storage-modes": storage_modes.figures,
    }
)


def figures_of(results: Results) -> Sequence[Figure | HeatMap]:
    """The figures of a campaign's report, in reading order."""
    return FIGURES[results.campaign.experiment.name](results)
