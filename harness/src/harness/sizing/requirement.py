"""What a sizing is asked for: a file that says the load, the data, the replicas and the kinds of node to choose."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from harness.experiments.levels import LEVELS, replicas
from harness.toml_lines import read_toml

KINDS = ("reads", "inserts", "updates", "scans")
Kind = Literal["reads", "inserts", "updates", "scans"]

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Level = Literal["ONE", "TWO", "THREE", "QUORUM", "ALL"]


class _Part(BaseModel):
    """Every table refuses keys that it does not know, and text where a number belongs."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Operations(_Part):
    """What is asked for at the peak, per second."""

    reads: NotNegative = 0.0
    inserts: NotNegative = 0.0
    # Of records that are there: written over as a whole.
    updates: NotNegative = 0.0
    scans: NotNegative = 0.0
    # Rows of one scan.
    scan_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 100

    @model_validator(mode="after")
    def _asks_for_something(self) -> "Operations":
        if not self.rates():
            raise ValueError("`operations` asks for nothing: give reads, inserts, updates or scans a rate")
        return self

    def rates(self) -> dict[str, float]:
        """By kind, without those of which nothing is asked."""
        rates = {kind: float(getattr(self, kind)) for kind in KINDS}
        return {kind: rate for kind, rate in rates.items() if rate > 0}


class Latency(_Part):
    """The 99th percentile of each kind in milliseconds, at most; None where it does not matter."""

    reads: Positive | None = None
    inserts: Positive | None = None
    updates: Positive | None = None
    scans: Positive | None = None


class Data(_Part):
    """Records, each counted once."""

    rows: Positive
    key_bytes: Annotated[int, Field(ge=1, le=65_536)] = 20
    # Key and value together.
    record_bytes: Annotated[int, Field(ge=2, le=1 << 30)]
    rows_per_day: NotNegative = 0.0
    # How long the rows grow before nodes are added.
    days: NotNegative = 0.0

    @model_validator(mode="after")
    def _key_is_a_part(self) -> "Data":
        if self.key_bytes >= self.record_bytes:
            raise ValueError(f"record_bytes is key and value together: more than key_bytes, {self.key_bytes}")
        return self

    @property
    def rows_then(self) -> float:
        """The rows that there are at the end."""
        return self.rows + self.rows_per_day * self.days


class Node(_Part):
    """One kind of node to choose from."""

    cores: Annotated[int, Field(ge=1, le=4096)]
    memory_gb: Positive
    disk_gb: Positive
    # In US dollars, with its memory and disk where `prices` has none for them.
    usd: NotNegative
    # What its disk does; where it is missing, what the disk of the campaigns did.
    disk_reads_per_s: Positive | None = None
    # Writes that are on the device, one after the other.
    disk_writes_per_s: Positive | None = None
    disk_mb_per_s: Positive | None = None
    network_gbit_per_s: Positive | None = None


class Prices(_Part):
    """Of memory and disk, on top of a node's."""

    memory_usd_per_gb: NotNegative = 0.0
    disk_usd_per_gb: NotNegative = 0.0


class Requirement(_Part):
    """All that a sizing is asked for."""

    title: str = ""
    # Nodes of a cluster, or processes that keep their own part of the data.
    system: Literal["cassandra", "embedded"] = "cassandra"
    replication: Annotated[int, Field(ge=1, le=20)] = 1
    levels: Annotated[list[Level], Field(min_length=1)] = ["ONE"]
    # Nodes that may be lost at once while the rest carries all of the load.
    lost_nodes: Annotated[int, Field(ge=0, le=100)] = 0
    # The part of each node that stays unused.
    headroom: Annotated[float, Field(ge=0, le=0.95)] = 0.3
    durability: Literal["sync", "interval"] = "interval"
    operations: Operations
    p99_ms: Latency = Latency()
    data: Data
    prices: Prices = Prices()
    node: Annotated[dict[str, Node], Field(min_length=1)]

    @field_validator("replication")
    @classmethod
    def _no_replicas(cls, replication: int, info: ValidationInfo) -> int:
        if info.data.get("system") == "embedded" and replication > 1:
            raise ValueError('`embedded` has no replicas: replication = 1, or system = "cassandra"')
        return replication

    @field_validator("levels")
    @classmethod
    def _enough_replicas(cls, levels: list[Level], info: ValidationInfo) -> list[Level]:
        replication = info.data.get("replication", 20)
        for level in levels:
            if replicas(level, replication) > replication:
                raise ValueError(f"level {level} asks for more replicas than `replication`, {replication}")
        if info.data.get("system") == "embedded" and levels != ["ONE"]:
            raise ValueError('`embedded` has no replicas: levels = ["ONE"], or system = "cassandra"')
        return levels

    def p99_us(self, kind: str) -> float | None:
        """The limit of a kind in microseconds."""
        limit: float | None = getattr(self.p99_ms, kind)
        return None if limit is None else 1000 * limit

    def node_usd(self, name: str) -> float:
        """What one node costs, with its memory and disk."""
        node = self.node[name]
        return node.usd + node.memory_gb * self.prices.memory_usd_per_gb + node.disk_gb * self.prices.disk_usd_per_gb


def read(path: Path) -> Requirement:
    """The requirement of a file; raises PlanError with the line that is wrong."""
    file = read_toml(path)
    try:
        return Requirement.model_validate(file.values)
    except ValidationError as error:
        # A table that is misspelt is missing as well: the misspelling is what to mend.
        first = min(error.errors(), key=lambda of: of["type"] != "extra_forbidden")
        place = tuple(str(of) for of in first["loc"])
        raise file.refusal(_words(place, first), *place) from error


def _words(place: tuple[str, ...], error: Mapping[str, Any]) -> str:
    """What is wrong and what to do, in the words of a file instead of those of a library."""
    name = ".".join(place)
    kind, given = error["type"], error.get("input")
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"`{name}` is unknown: {_choices(place)}"
    if kind == "missing":
        return f"`{name}` is missing: {_meaning(place)}"
    if kind == "value_error":
        return f"{context['error']}"
    if kind == "literal_error":
        return f"`{name}`: {given!r} is unknown: choose from {context['expected']}"
    bounds = {"greater_than": "more than", "greater_than_equal": "at least", "less_than_equal": "at most"}
    limits = {"greater_than": "gt", "greater_than_equal": "ge", "less_than_equal": "le"}
    if kind in bounds:
        return f"`{name}`: {given!r} is out of bounds: {bounds[kind]} {context[limits[kind]]:g}"
    if kind == "too_short":
        return f"`{name}` is empty: give one at least"
    return f"`{name}`: {given!r} cannot be: {error['msg'].lower()}"


def _model(place: tuple[str, ...]) -> type[_Part]:
    """The table in which a key lies."""
    tables: dict[str, type[_Part]] = {
        "operations": Operations, "p99_ms": Latency, "data": Data, "prices": Prices, "node": Node,
    }  # fmt: skip
    return tables[place[0]] if len(place) > 1 and place[0] in tables else Requirement


def _choices(place: tuple[str, ...]) -> str:
    return f"choose from {', '.join(_model(place).model_fields)}"


def _meaning(place: tuple[str, ...]) -> str:
    model = _model(place)
    first = (model.__doc__ or "").strip().splitlines()[0]
    return f"its table is {first[0].lower() + first[1:].rstrip('.')}"


assert set(LEVELS) == {"ONE", "TWO", "THREE", "QUORUM", "ALL"}, "levels here are those of the campaigns"
