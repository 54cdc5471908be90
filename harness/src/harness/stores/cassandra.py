"""Real Cassandra nodes on this machine, one process each, as scripts/cluster.sh makes them."""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

from harness.experiments.base import Place, Service

# Not the addresses that `make cluster` and the tests of the plug-in use: 127.0.7.1 and on.
NETWORK = 7
# As scripts/cluster.sh counts; more nodes than memory takes are refused there too, but only once they start.
NODE_BYTES = 700 << 20
# The first node; each further one waits for the ring to settle.
FIRST_NODE_SECONDS = 15.0
NODE_SECONDS = 20.0

# What a table is made with: which memtable holds it. `stock` is what Cassandra takes unless told otherwise.
ENGINES = MappingProxyType(
    {
        "stock": "memtable = 'default'",
        "trie": "memtable = 'trie'",
        "aiodb": "memtable = 'aiodb'",
    }
)

# cassandra.yaml, beside what scripts/cluster.sh writes. A snapshot before each TRUNCATE would be of no use to anyone.
_SETTINGS = ("auto_snapshot: false",)
_BATCH = ("commitlog_sync: batch", "commitlog_sync_period: 0ms")


def addresses(nodes: int) -> str:
    """Where the nodes answer, as YCSB takes it."""
    return ",".join(f"127.0.{NETWORK}.{node}" for node in range(1, nodes + 1))


def cluster(
    place: Place, nodes: int, batch: bool = False, settings: Sequence[str] = (), memtable: str | None = None
) -> Service:
    """A cluster of so many nodes. In batch mode an acknowledged write is on the device, in the commit log and in aiodb
    alike; otherwise a power cut may take the last seconds. `settings` are further lines of cassandra.yaml, `memtable`
    another store behind the memtable `aiodb`."""
    home = place.scratch / "cluster"
    ready = place.scratch / "cluster-ready"
    lines = [*_SETTINGS, *(_BATCH if batch else ()), *settings]
    durability = "sync" if batch else "interval"
    variables = {
        "CLUSTER": home,
        "NETWORK": NETWORK,
        "DURABILITY": durability,
        "SETTINGS": "\n".join(lines),
        "PLUGIN": plugin(place),
    }
    given = (f"{name}={value}" for name, value in variables.items())
    arguments = (str(ready), str(nodes), *((memtable,) if memtable else ()))
    command = ("env", *given, str(keeper(place)), *arguments)
    seconds = FIRST_NODE_SECONDS + nodes * NODE_SECONDS
    return Service("cluster", command, ready.exists, seconds_to_start=120 + 5 * seconds)


def keeper(place: Place) -> Path:
    """The command that keeps a cluster."""
    return place.checkout / "harness" / "keep-cluster.sh"


def plugin(place: Place) -> Path:
    """The jar of the memtable."""
    return place.checkout / "java" / "cassandra" / "target" / "aiodb-cassandra-0.1.0.jar"
