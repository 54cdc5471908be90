"""Measurements that are made up, and requirements to be sized from them."""

import dataclasses
from pathlib import Path
from typing import Any

from harness.scaling import Law
from harness.sizing import solve
from harness.sizing.evidence import Observation
from harness.sizing.model import Model
from harness.sizing.requirement import Requirement
from harness.sizing.solve import Answer
from harness.sizing.ways import Way

CHECKOUT = Path(__file__).parents[2]
AIODB = Way("cassandra", "aiodb", "values on SSD")
OWN = Way("cassandra", "Cassandra's own", "all in memory")
EMBEDDED = Way("embedded", "aiodb", "values on SSD")
LAW = Law(0.001, 0.0002, 0.000001)
COUNTS = (1, 2, 4, 8, 16, 32, 64)
# The most that the law gives, with 32 clients.
MOST = max(LAW.per_s(of) for of in COUNTS)


def observation(**changes: Any) -> Observation:
    """A point of one node of aiodb under Cassandra."""
    plain = Observation(
        source="load", way=AIODB, mix={"reads": 1.0}, nodes=1, replication=1, level="ONE", clients=64.0,
        values=(1000.0,), p99_us={"reads": 5000.0}, mean_us={}, cores=2, record_bytes=1000.0, rows=1e6,
        memory_part=25.0, scan_rows=50.0,
        durability="interval", limits={}, marks=(),
    )  # fmt: skip
    return dataclasses.replace(plain, **changes)


def swept(kind: str = "reads", **changes: Any) -> list[Observation]:
    """One node under each count of clients, by the law, and later the more there are."""
    return [
        observation(mix={kind: 1.0}, clients=float(of), values=(LAW.per_s(of),), p99_us={kind: 1000.0 * of}, **changes)
        for of in COUNTS
    ]


def asked(**changes: Any) -> Requirement:
    """A requirement near what was measured, with the changes."""
    values: dict[str, Any] = {
        "operations": {"reads": 1000.0},
        "headroom": 0.0,
        "data": {"rows": 1e6, "record_bytes": 1000, "key_bytes": 18},
        "node": {"same": {"cores": 2, "memory_gb": 1000.0, "disk_gb": 1000.0, "disk_reads_per_s": 1e6, "usd": 100.0}},
    }
    return Requirement.model_validate({**values, **changes})


def node(**changes: Any) -> dict[str, Any]:
    plain = {"cores": 2, "memory_gb": 1000.0, "disk_gb": 1000.0, "disk_reads_per_s": 1e6, "usd": 100.0}
    return {"same": {**plain, **changes}}


def one(model: Model, requirement: Requirement, way: Way = AIODB, level: str = "ONE") -> Answer:
    return solve.answer(model, requirement, next(iter(requirement.node)), way, level)
