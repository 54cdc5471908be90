"""A table of one Cassandra node, on whichever memtable."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.node_limits import NodeLimits
from harness.steps import Place, Service
from harness.stores import cassandra
from harness.stores.base import Store


class _Table(Store):
    engine: ClassVar[str]
    # The store behind the memtable `aiodb`, where it is another.
    behind: ClassVar[tuple[str, ...]] = ()
    # What the memtable `aiodb` is told.
    told: ClassVar[str] = cassandra.INDEX
    # Cassandra always has a commit log.
    durabilities = ("sync", "interval")
    least_memory_mib = cassandra.LEAST_NODE_MIB
    starting_seconds = cassandra.FIRST_NODE_SECONDS + cassandra.NODE_SECONDS
    loads_per_s = 4_000.0
    writes_per_s = cassandra.WRITES_PER_S

    @property
    def client(self) -> str:
        return "cql"

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (
            f"hosts={cassandra.addresses(1)}",
            f"cassandra.table_options={cassandra.ENGINES[self.engine].options}",
            "cassandra.readconsistencylevel=ONE",
            "cassandra.writeconsistencylevel=ONE",
        )

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        limits = NodeLimits(memory_bytes=memory_bytes)
        batch, more = durability == "sync", {"PARAMETERS": self.told}
        return (cassandra.cluster(place, 1, batch, memtables=self.behind, limits=limits, more=more),)

    def limits_missing(self) -> str | None:
        return NodeLimits(memory_bytes=self.least_memory_mib << 20).missing()

    def ran_out_of_heap(self, place: Place) -> bool:
        return cassandra.ran_out_of_heap(place)

    def programs(self, place: Place) -> Sequence[Path]:
        return cassandra.programs(place, self.behind)

    def disk_bytes(self, held_bytes: float) -> float:
        return cassandra.disk_bytes(1, held_bytes)


class StockTable(_Table):
    """What Cassandra takes unless told otherwise."""

    name = "cassandra"
    title = "Cassandra's memtable"
    colour = "c1"
    engine = "stock"


class AiodbTable(_Table):
    """This project's memtable with the index `lmdb`, which all that is published under this name has."""

    name = "cassandra-aiodb"
    title = "aiodb under Cassandra"
    colour = "c0"
    engine = "aiodb"


class AiodbLsmTable(AiodbTable):
    """The same with an index of sorted runs, the memtable's default."""

    name = "cassandra-aiodb-lsm"
    title = "aiodb under Cassandra, sorted runs"
    colour = "c6"
    told = cassandra.SORTED_RUNS


class RocksDbTable(_Table):
    """RocksDB behind this project's memtable."""

    name = "cassandra-rocksdb"
    title = "RocksDB under Cassandra"
    colour = "c2"
    engine = "aiodb"
    behind = ("rocksdb",)


class LmdbTable(_Table):
    """LMDB behind this project's memtable."""

    name = "cassandra-lmdb"
    title = "LMDB under Cassandra"
    colour = "c3"
    engine = "aiodb"
    behind = ("lmdb",)


class MysqlTable(_Table):
    """MySQL behind this project's memtable, a server of the node's own."""

    name = "cassandra-mysql"
    title = "MySQL under Cassandra"
    colour = "c8"
    engine = "aiodb"
    behind = ("mysql",)
    packages = cassandra.packages(behind)
    loads_per_s = 2_000.0


class RedisTable(_Table):
    """Redis behind this project's memtable, a server of the node's own."""

    name = "cassandra-redis"
    title = "Redis under Cassandra"
    colour = "c4"
    engine = "aiodb"
    behind = ("redis",)
    packages = cassandra.packages(behind)
