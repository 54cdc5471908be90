"""Names as words: `threads=30 nodes=4` are "30 clients, 4 nodes", and what is the same everywhere is left out."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from harness.experiments.storage_modes import AGAIN, plain
from harness.fields import Levels, Value
from harness.results import Point, Results
from harness.stores.cassandra import ENGINES, MIXED
from harness.stores.registry import STORES

# An axis to what is said of a level.
_AXES = MappingProxyType(
    {
        "threads": ("client", "clients"),
        "nodes": ("node", "nodes"),
        "replication": ("replica", "replicas"),
        "depth": ("get in flight", "gets in flight"),
        "copy_bytes": ("byte copied", "bytes copied"),
        "value_bytes": ("byte a value", "bytes a value"),
        "gets_per_s": ("get/s", "gets/s"),
        "data_gb": ("GB", "GB"),
        "rows": ("row", "rows"),
        "size": ("in size", "in size"),
        "field_bytes": ("byte a value", "bytes a value"),
        "memory_times": ("times the memory", "times the memory"),
    }
)
# Levels that are words already, in other words.
_LEVELS = MappingProxyType(
    {
        "writeonly": "inserts",
        "sensor": "inserts",
        "readonly": "reads",
        "readheavy": "9 reads for each write",
        "writeheavy": "9 writes for each read",
        "workloada": "A, half updates",
        "workloadb": "B, 5 % updates",
        "workloadc": "C, reads",
        "workloadd": "D, reads of the latest",
        "workloade": "E, short ranges",
        "workloadf": "F, read and change",
        "get_pipelined": "get ×16",
        "set_pipelined": "set ×16",
        "set_durable": "durable set",
        "set_durable_pipelined": "durable set ×16",
        "get_idle": "get, 5,000 idle",
        "get_large_64": "get, device, 64",
        "get_large_300": "get, device, 300",
        "half": "half reads",
        "read-heavy": "19 reads for each write",
        "write-heavy": "19 writes for each read",
        "token": "asked where the record is",
        "spread": "through all nodes",
        "one": "through one node",
        "lsm": "sorted runs as index",
        "lmdb": "LMDB index",
        "hash": "hash index",
        "uring": "io_uring",
    }
)
# What has a colour of its own, as a store has, and is none of the registry: as people call it, and its colour.
_OTHERS = MappingProxyType(
    {
        MIXED: ("mixed engines", "c6"),
        "auto/auto": ("what is asked for in memory", "c5"),
        "memory/memory": ("keys and values in memory", "c2"),
        "memory/disk": ("keys in memory, values on disk", "c0"),
        "disk/disk": ("keys and values on disk", "c1"),
    }
)
# Axes whose levels have colours of their own.
_COLOURED = ("engine", "modes")


def store_name(store: str) -> str:
    """A store, or the engine of a table, as people call it."""
    if store in _OTHERS:
        return _OTHERS[store][0]
    if store.endswith(AGAIN):
        return f"{store_name(plain(store))}{AGAIN}"
    known = {**{name: of.title for name, of in STORES.items()}, **{name: of.title for name, of in ENGINES.items()}}
    if store in known:
        return known[store]
    engine, _, megabytes = store.partition("-")
    return f"{known[engine]}, {megabytes} MB" if engine in known and megabytes.isdigit() else store


def store_colour(store: str) -> str:
    """The colour of a store or engine, by its name in style.css; of an unknown one the first."""
    if store in _OTHERS:
        return _OTHERS[store][1]
    known = {**{name: of.colour for name, of in STORES.items()}, **{name: of.colour for name, of in ENGINES.items()}}
    return known.get(store) or known.get(store.partition("-")[0], "c0")


def level_name(axis: str, level: Value) -> str:
    """A level in words: `30 clients`."""
    if axis in _COLOURED:
        return store_name(str(level))
    if axis in _AXES and isinstance(level, int | float):
        one, many = _AXES[axis]
        return f"{_count(level)} {one if level == 1 else many}"
    return _LEVELS.get(str(level), str(level))


def levels_name(levels: Levels, axes: Iterable[str]) -> str:
    """Some of the levels, in words."""
    return ", ".join(level_name(axis, levels[axis]) for axis in axes if axis in levels)


def varying(results: Results) -> list[str]:
    """The axes that have several levels."""
    return [axis for axis, levels in results.variant.axes.items() if len(levels) > 1]


def point_name(results: Results, point: Point, without: Iterable[str] = ()) -> str:
    """A point in words, without what is the same for all: store first, then the axes in their order."""
    left_out = set(without)
    words = [store_name(point.store)] if len(results.variant.stores) > 1 and "store" not in left_out else []
    axes = sorted((axis for axis in varying(results) if axis not in left_out), key=lambda axis: axis not in _COLOURED)
    words += [level_name(axis, point.levels[axis]) for axis in axes if axis in point.levels]
    return ", ".join(words) or store_name(str(point.levels.get("engine", point.store)))


def constants(results: Results) -> str:
    """What is the same for all points, in words."""
    levels: Mapping[str, Value] = {axis: of[0] for axis, of in results.variant.axes.items() if len(of) == 1}
    # Where tables have an engine, it says whose they are.
    stores = [] if "engine" in results.variant.axes else results.variant.stores
    words = [store_name(stores[0])] if len(stores) == 1 else []
    return ", ".join([*words, *(level_name(axis, level) for axis, level in levels.items())])


def _count(level: float) -> str:
    if level >= 1_000_000 and level % 1_000_000 == 0:
        return f"{level / 1_000_000:g} M"
    return f"{level:,}" if isinstance(level, int) else f"{level:g}"
