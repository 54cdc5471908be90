"""The stores that run in YCSB's own process."""

from collections.abc import Sequence

from harness.steps import Place
from harness.stores.base import Store


class _Embedded(Store):
    in_client = True

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (f"store.directory={place.scratch / 'store'}", f"store.durability={durability}")


class Aiodb(_Embedded):
    """This project's engine with the index `lmdb`, which all that is published under this name has."""

    name = "aiodb"
    title = "aiodb"
    colour = "c0"
    index = "lmdb"

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (*super().properties(place, durability), f"store.index={self.index}")


class AiodbLsm(Aiodb):
    """The same with an index of sorted runs, the engine's default."""

    name = "aiodb-lsm"
    title = "aiodb, sorted runs"
    colour = "c6"
    index = "lsm"

    @property
    def client(self) -> str:
        return Aiodb.name


class RocksDb(_Embedded):
    """RocksDB."""

    name = "rocksdb"
    title = "RocksDB"
    colour = "c2"


class Lmdb(_Embedded):
    """LMDB, whose writes are all `sync`, whatever is asked for."""

    name = "lmdb"
    title = "LMDB"
    colour = "c3"
    loads_per_s = 3_000.0
