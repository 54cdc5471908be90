"""Real Cassandra nodes on this machine, one process each, as scripts/cluster.sh makes them."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from harness.files import last_lines
from harness.node_limits import NodeGroups, NodeLimits
from harness.sampling import device_number
from harness.steps import Place, Service

# Not the addresses that `make cluster` and the tests of the plug-in use: 127.0.7.1 and on.
NETWORK = 7
# As scripts/cluster.sh counts; more nodes than memory takes are refused there too, but only once they start.
NODE_BYTES = 700 << 20
# Below this a node does not start.
LEAST_NODE_MIB = 900
# The first node; each further one waits for the ring to settle.
FIRST_NODE_SECONDS = 15.0
NODE_SECONDS = 20.0
# Records of a kilobyte that all nodes on one machine have been seen to write per second, replicas counted.
WRITES_PER_S = 20_000
# What a node has on the disk before anybody writes, and how large all commit logs get: as large as what is written, up
# to Cassandra's own limit.
_NODE_DISK_BYTES = 150 << 20
_COMMIT_LOG_BYTES = 8 << 30


@dataclasses.dataclass(frozen=True)
class Engine:
    """What holds a table: a memtable."""

    # What the table is made with.
    options: str
    # As people call it, and its colour in every figure.
    title: str
    colour: str


# `stock` is what Cassandra takes unless told otherwise.
ENGINES = MappingProxyType(
    {
        "stock": Engine("memtable = 'default'", "Cassandra's memtable", "c1"),
        "trie": Engine("memtable = 'trie'", "Cassandra's trie memtable", "c5"),
        "aiodb": Engine("memtable = 'aiodb'", "aiodb", "c0"),
    }
)

# This project's own store behind the memtable `aiodb`, and what that is told: all that is published under the name
# `aiodb` has the index `lmdb`.
OWN = "aiodb"
INDEX = "index: lmdb"
# What `aiodb` takes unless told otherwise: an index of sorted runs.
SORTED_RUNS = "index: lsm"
# Stores behind it that are servers: each node has one of its own, from these packages.
PACKAGES = MappingProxyType({"mysql": "mariadb-server", "redis": "redis-server"})
NOTHING: Mapping[str, str] = MappingProxyType({})
# What a cluster is called whose nodes have different stores behind it.
MIXED = "mixed"

# What a virtual machine says that finds no more room in its heap, among the lines that a dead node leaves.
_OUT_OF_HEAP = "OutOfMemoryError"
_LOG_LINES = 40
# cassandra.yaml, beside what scripts/cluster.sh writes. A snapshot before each TRUNCATE would be of no use to anyone.
_SETTINGS = ("auto_snapshot: false",)


def addresses(nodes: int) -> str:
    """Where the nodes answer, as YCSB takes it."""
    return ",".join(f"127.0.{NETWORK}.{node}" for node in range(1, nodes + 1))


def variables(
    place: Place,
    batch: bool = False,
    settings: Sequence[str] = (),
    groups: NodeGroups | None = None,
    more: Mapping[str, str] = NOTHING,
) -> tuple[str, ...]:
    """What scripts/cluster.sh is told of the cluster of a run, and the scripts that call it, as `env` takes it; what
    `more` says goes before."""
    told = {
        "CLUSTER": place.scratch / "cluster",
        "NETWORK": NETWORK,
        "COMMIT_LOG": "batch" if batch else "periodic",
        "DURABILITY": "sync" if batch else "interval",
        "SETTINGS": "\n".join([*_SETTINGS, *settings]),
        "PLUGIN": plugin(place),
        "PARAMETERS": INDEX,
        "ENTER": " ".join(map(str, groups.entrances("NODE"))) if groups else "",
        **more,
    }
    return tuple(f"{name}={value}" for name, value in told.items())


def cluster(
    place: Place,
    nodes: int,
    batch: bool = False,
    settings: Sequence[str] = (),
    memtables: Sequence[str] = (),
    limits: NodeLimits | None = None,
    may_grow_to: int = 0,
    more: Mapping[str, str] = NOTHING,
) -> Service:
    """A cluster of so many nodes, each within groups for the limits, as will be those that join later. In batch mode an
    acknowledged write is on the device, in the commit log and in aiodb alike; otherwise a power cut may take the last
    seconds. `settings` are further lines of cassandra.yaml, `memtables` what is behind the memtable `aiodb`: of all
    nodes, or of each; `more` is as in `variables`."""
    ready = place.scratch / "cluster-ready"
    groups = node_groups(place, max(nodes, may_grow_to), limits)
    command = (
        "env", *variables(place, batch, settings, groups, more), str(keeper(place)), str(ready), str(nodes), *memtables
    )  # fmt: skip
    seconds = FIRST_NODE_SECONDS + nodes * NODE_SECONDS
    service = Service("cluster", command, ready.exists, seconds_to_start=120 + 5 * seconds)
    if groups is None:
        return service
    return dataclasses.replace(service, prepare=groups.make, tidy=groups.remove, killed=groups.killed)


def ran_out_of_heap(place: Place) -> bool:
    """Whether a node that died has said that it found no more room in its heap."""
    return any(_OUT_OF_HEAP in line for line in last_lines(place.kept / "cluster.log", _LOG_LINES))


def disk_bytes(nodes: int, held_bytes: float) -> float:
    """About what nodes take on the disk that hold so much between them."""
    return nodes * _NODE_DISK_BYTES + held_bytes + min(held_bytes, _COMMIT_LOG_BYTES)


def node_groups(place: Place, nodes: int, limits: NodeLimits | None) -> NodeGroups | None:
    """The control groups of so many nodes; None where nothing limits them."""
    if not limits:
        return None
    return NodeGroups(limits, nodes, device_number(place.scratch) if limits.limits_disk() else "")


def programs(place: Place, memtables: Sequence[str] = ()) -> Sequence[Path]:
    """The files that a cluster is made with whose nodes have these stores behind the memtable `aiodb`."""
    behind = [_jar(place, memtable) for memtable in memtables if memtable != OWN]
    servers = any(memtable in PACKAGES for memtable in memtables)
    return [
        keeper(place),
        place.checkout / "harness" / "within.sh",
        place.checkout / "scripts" / "cluster.sh",
        # It says which Cassandra that is.
        place.checkout / "java" / "cluster" / "pom.xml",
        plugin(place),
        *behind,
        *((place.checkout / "scripts" / "cluster-servers.sh",) if servers else ()),
    ]


def packages(memtables: Iterable[str]) -> tuple[str, ...]:
    """The packages of the system that nodes with these stores behind the memtable `aiodb` need."""
    return tuple(PACKAGES[memtable] for memtable in memtables if memtable in PACKAGES)


def _jar(place: Place, memtable: str) -> Path:
    # What asks a server has its driver in it.
    kind = "-cassandra" if memtable in PACKAGES else ""
    return place.checkout / "java" / f"store-{memtable}" / "target" / f"store-{memtable}-0.1.0{kind}.jar"


def keeper(place: Place) -> Path:
    """The command that keeps a cluster."""
    return place.checkout / "harness" / "keep-cluster.sh"


def plugin(place: Place) -> Path:
    """The jar of the memtable."""
    return place.checkout / "java" / "cassandra" / "target" / "aiodb-cassandra-0.1.0.jar"
