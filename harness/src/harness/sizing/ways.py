"""How data can be stored: an engine, and where the values lie."""

from dataclasses import dataclass

from harness.experiments.ycsb import DEVICE_STORE

ON_SSD, IN_MEMORY = "values on SSD", "all in memory"
LARGER = "larger than memory"


@dataclass(frozen=True)
class Way:
    """One way to store the data, of one system."""

    system: str
    engine: str
    # Where the values lie.
    place: str

    @property
    def name(self) -> str:
        """As people read it."""
        return f"{self.engine}, {self.place}"

    @property
    def is_aiodb(self) -> bool:
        """Whether aiodb holds the data, with its index and its segments."""
        return self.engine == DEVICE_STORE

    @property
    def in_memory(self) -> bool:
        """Whether memory must hold all data."""
        return self.place == IN_MEMORY


CASSANDRAS_OWN = "Cassandra's own"
WAYS = (
    Way("cassandra", DEVICE_STORE, ON_SSD),
    Way("cassandra", DEVICE_STORE, IN_MEMORY),
    Way("cassandra", CASSANDRAS_OWN, ON_SSD),
    Way("cassandra", CASSANDRAS_OWN, IN_MEMORY),
    Way("embedded", DEVICE_STORE, ON_SSD),
    Way("embedded", "rocksdb", IN_MEMORY),
    Way("embedded", "lmdb", IN_MEMORY),
    Way("embedded", "redis", IN_MEMORY),
)
_ENGINES = {"stock": CASSANDRAS_OWN, "aiodb": DEVICE_STORE}
_STORES = {"cassandra": CASSANDRAS_OWN, "cassandra-aiodb": DEVICE_STORE}


def way_of(store: str, engine: str | None, larger: bool) -> Way | None:
    """The way in which a campaign's store had its data; None where it is no way to choose here. aiodb without a cache
    asks the device for each value, whatever the size of the data; others have them in memory as long as they fit."""
    system = "cassandra" if store.startswith("cassandra") else "embedded"
    name = _ENGINES.get(engine or "") if engine else _STORES.get(store, store)
    place = ON_SSD if name == DEVICE_STORE or larger else IN_MEMORY
    return next((way for way in WAYS if (way.system, way.engine, way.place) == (system, name, place)), None)
