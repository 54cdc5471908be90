"""The answer of each kind of experiment by its name. A new kind is a file with a function, and its line here."""

from collections.abc import Callable
from types import MappingProxyType

from harness.report.answer import Answer
from harness.report.answers import (
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

ANSWERS: MappingProxyType[str, Callable[[Results], Answer]] = MappingProxyType(
    {
        "queue-depth": queue_depth.answer,
        "copy-size": copy_size.answer,
        "cost": cost.answer,
        "ycsb": ycsb.answer,
        "memory-full": memory_full.answer,
        "cassandra": cassandra.answer,
        "engines": engines.answer,
        "grow": grow.answer,
        "serve": serve.answer,
        "direct-access": direct_access.answer,
        "mixed-replicas": mixed_replicas.answer,
        "storage-modes": storage_modes.answer,
    }
)


def answer_of(results: Results) -> Answer:
    """What a campaign found, for the first screen of its report."""
    return ANSWERS[results.campaign.experiment.name](results)
