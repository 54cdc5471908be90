"""What the data take of a node: disk space and memory."""

import math

from harness.sizing import facts
from harness.sizing.node import Demand, Unsure
from harness.sizing.requirement import Node, Requirement
from harness.sizing.ways import Way


def room_demands(way: Way, asked: Requirement, node: Node) -> list[Demand]:
    """Disk space and memory, as evenly as replicas allow."""
    rows = asked.data.rows_then
    found = []
    space = rows * disk_bytes_of_row(way, asked)
    amplified = facts.AIODB_SPACE if way.is_aiodb else facts.OTHERS_SPACE
    index = _unsure_index(way, asked)
    found.append(
        Demand(
            "disk space",
            {"data": space * asked.replication / (node.disk_gb * 1e9)},
            {"data": (_unsure_fact("disk space of a record", amplified, way), *index)},
            grows=False,
        )
    )
    room = node.memory_gb * 1e9
    if way.system == "cassandra":
        room -= facts.CASSANDRA_MEMORY_GB.value * 1e9
    held = rows * memory_bytes_of_row(way, asked)
    wanted = held * asked.replication / room if room > 0 else math.inf
    fact = facts.MEMORY_PER_RECORD_BYTES if way.in_memory else facts.INDEX_BYTES_PER_KEY
    unsure = (_unsure_fact("memory of a record", fact, way), *index) if held else ()
    found.append(Demand("memory", {"data": wanted}, {"data": unsure}, grows=False))
    return found


def _unsure_index(way: Way, asked: Requirement) -> tuple[Unsure, ...]:
    """That keys are longer than those whose index was measured."""
    if not way.is_aiodb or asked.data.key_bytes <= facts.NEAR * facts.INDEX_KEY_BYTES:
        return ()
    words = f"the index was measured with keys of {facts.INDEX_KEY_BYTES} bytes, not {asked.data.key_bytes}"
    return (Unsure("index of a key", facts.LONG_KEYS_SPREAD, words, "the index of as many keys as long: aiodb stat"),)


def _unsure_fact(name: str, fact: facts.Fact, way: Way) -> Unsure:
    words = "" if fact.measured else f"{name} of {way.engine} was not measured: {fact.source}"
    return Unsure(name, fact.spread, words, f"{name} of {way.engine}, on a node with as many rows as yours")


def disk_bytes_of_row(way: Way, asked: Requirement) -> float:
    """What a record takes on disk, with what is dead and not yet gone, and its place in an index."""
    record = asked.data.record_bytes
    if not way.is_aiodb:
        return record * facts.OTHERS_SPACE.value
    header = facts.RECORD_HEADER_BYTES.value
    value = record - asked.data.key_bytes
    if value >= facts.OWN_SECTORS_FROM:
        sectors = math.ceil(value / facts.SECTOR_BYTES) * facts.SECTOR_BYTES
        stored = sectors + _rounded(header + 8 + asked.data.key_bytes)
    else:
        stored = _rounded(header + record)
    return stored * facts.AIODB_SPACE.value + index_bytes_of_row(asked)


def index_bytes_of_row(asked: Requirement) -> float:
    """What the place of a record takes in the ordered index, which holds whole keys."""
    further = max(0, asked.data.key_bytes - facts.INDEX_KEY_BYTES)
    return facts.INDEX_BYTES_PER_KEY.value + further * facts.INDEX_BYTES_PER_KEY_BYTE


def _rounded(size: float) -> float:
    return math.ceil(size / facts.RECORD_ROUNDING) * facts.RECORD_ROUNDING


def memory_bytes_of_row(way: Way, asked: Requirement) -> float:
    """What of a record memory must hold: the index alone, or all of it."""
    index = index_bytes_of_row(asked) if way.is_aiodb else 0.0
    return index + (asked.data.record_bytes + facts.MEMORY_PER_RECORD_BYTES.value if way.in_memory else 0.0)
