"""What the arithmetic of a sizing takes from documents and not from campaigns, each with its source; where nothing was
measured it says that it is assumed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A number, and who says so."""

    value: float
    source: str
    measured: bool = True
    # How far off it may be: the standard deviation of its logarithm.
    spread: float = 0.0


# docs/operations.md, "Space": what a record takes beside key and value, and to what it is rounded up.
RECORD_HEADER_BYTES = Fact(24, "docs/operations.md")
RECORD_ROUNDING = 16
# From so many bytes on a value takes whole sectors of its own.
OWN_SECTORS_FROM = 1_280
SECTOR_BYTES = 512
# What reclaim leaves: "plan for 1.5 times the live bytes".
AIODB_SPACE = Fact(1.5, "docs/operations.md", spread=0.1)
# The ordered index (`lsm`), which a store under Cassandra has: on disk, and to be held by its cache.
INDEX_BYTES_PER_KEY = Fact(34, "docs/operations.md", spread=0.2)
# The keys of that index (docs/operations.md, "Choosing"). What each further byte of a key adds is assumed: the index
# has them whole, and some of them twice until its runs are merged.
INDEX_KEY_BYTES = 18
INDEX_BYTES_PER_KEY_BYTE = 1.25
LONG_KEYS_SPREAD = 0.2
# What Cassandra's own files and those of other stores take by what is in them.
OTHERS_SPACE = Fact(2.0, "twice its bytes is assumed, as a compaction holds old and new files at once", False, 0.25)
# Memory of each record that is held beside key and value.
MEMORY_PER_RECORD_BYTES = Fact(64, "64 bytes beside its own are assumed, as by `aiodb bench cost`", False, 0.15)
# What a node of Cassandra has when idle, its heap of 1 GB included (docs/cassandra.md, "Less memory than data").
CASSANDRA_MEMORY_GB = Fact(1.393, "docs/cassandra.md")
# Reads of the disk for a get of aiodb whose block of the index is in the cache of blocks.
READS_PER_GET = Fact(1.0, "docs/decisions/0044-a-cache-of-blocks.md")
# Of every request and answer, beside what it carries.
MESSAGE_BYTES = Fact(100, "assumed", measured=False)
# How far the disk read ahead where gets of Cassandra's own were counted (docs/cassandra.md, "Less memory than data").
READ_AHEAD_BYTES = 16_384

# How much a doubling of cores brings, as 80 % of cases: nothing of it was measured.
CORES_PER_DOUBLING = (1.5, 2.0)
# By what power of its size a record's cost grows, where it is larger than what was measured: 80 % of cases.
SIZE_POWER = (0.0, 0.5)
# Sizes and rows within this factor count as measured.
NEAR = 2.0
# So many times the rows that were measured are another store.
FAR_ROWS = 100.0
# How much that may matter, in 80 % of cases.
FAR_ROWS_FACTOR = 1.5
# What one kind of commit log says of another: by what factor in 80 % of cases.
DURABILITY_FACTOR = 2.0
