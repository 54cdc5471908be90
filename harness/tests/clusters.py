"""Campaigns and results of experiments over Cassandra, without any node."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from harness.experiments.base import Experiment
from harness.experiments.cassandra import Cassandra
from harness.experiments.grow import Grow
from harness.fields import Value
from harness.host import Identity, Origin
from harness.outcomes import Outcome
from harness.plan import Campaign, Variant, runs
from harness.results import Results
from harness.rows import Row

CELLS: Mapping[str, tuple[Value, ...]] = {
    "nodes": (3,), "replication": (3,), "engine": ("stock", "aiodb"), "workload": ("writeonly", "readonly"),
    "level": ("ONE", "ALL"), "entry": ("token",), "threads": (8, 32),
}  # fmt: skip


def campaign_of(
    experiment: Experiment, axes: Mapping[str, tuple[Value, ...]], store: str, **parameters: Value
) -> tuple[Campaign, Variant]:
    defaults = {name: of.default for name, of in experiment.parameters.items() if of.default is not None}
    given = MappingProxyType({**defaults, **parameters})
    variant = Variant("quick", (store,), experiment.phases, 1, MappingProxyType(dict(axes)), given, ())
    variants = MappingProxyType({"quick": variant})
    return Campaign("cells", Path("cells.toml"), "Title", "So?", "nobody", experiment, variants), variant


def results_of(experiment: Experiment, axes: Mapping[str, tuple[Value, ...]], store: str, **values: float) -> Results:
    parameters: dict[str, Value] = {"records": 1000, "seconds": 20} if isinstance(experiment, Cassandra) else {}
    if isinstance(experiment, Grow):
        parameters = {"workload": "readonly", "threads": 8, "records": 1000, "stage_seconds": 60}
    campaign, variant = campaign_of(experiment, axes, store, **parameters)
    planned = tuple(runs(campaign, variant))
    identity = Identity("a processor", 2, 2**34, "Linux", "vda", "ext4", {})
    origin = Origin(identity, "0123456789ab", "2026-01-31T12:00:00Z", "harness run", {})
    outcomes = {}
    for run in planned:
        curve = {"read": ((50.0, 5.0), (99.0, 50.0))}
        rows = tuple(
            Row(point, {name: value + number for name, value in values.items()}, (0.0, 9.0), percentiles_us=curve)
            for number, point in enumerate(run.points())
        )
        outcomes[run.id] = Outcome(run.id, store, 1, origin.began_utc, 9.0, (), rows, ())
    return Results(Path("/nowhere"), campaign, variant, origin, planned, outcomes)
