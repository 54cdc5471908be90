"""How much of its heap a Java virtual machine uses, from the counters that each one keeps in a file of its own. Reading
them costs the virtual machine nothing, unlike asking it."""

import struct
from pathlib import Path

_FOLDER = Path("/tmp")
_MAGIC = b"\xca\xfe\xc0\xc0"
# Magic, byte order (1: little-endian), two bytes of the version, one of accessibility; bytes used, bytes lacked, time
# of the last change, offset of the first entry, entries.
_HEAD = struct.Struct("<4sBBBBIIQII")
# Length of the entry, offset of its name, length of a vector, kind, flags, unit, variability, offset of its value.
_ENTRY = struct.Struct("<IIIcBBBI")
_VALUE = struct.Struct("<q")


def heap_bytes(pid: int) -> int:
    """The heap in use; 0 for a process that is no virtual machine, or one that shows nothing."""
    for path in _FOLDER.glob(f"hsperfdata_*/{pid}"):
        try:
            return heap_of(path.read_bytes())
        except (OSError, struct.error, ValueError):
            # It has just ended or just begun.
            return 0
    return 0


def heap_of(content: bytes) -> int:
    """The heap in use by such a file; raises struct.error or ValueError where it is none."""
    magic, byte_order, *_, offset, entries = _HEAD.unpack_from(content)
    if magic != _MAGIC or byte_order != 1:
        raise ValueError("no counters of a virtual machine")
    used = 0
    for _ in range(entries):
        length, name_offset, _, kind, _, _, _, value_offset = _ENTRY.unpack_from(content, offset)
        if length == 0:
            raise ValueError("an entry without a length")
        name_end = content.index(b"\0", offset + name_offset)
        name = content[offset + name_offset : name_end].decode("ascii", errors="replace")
        if kind == b"J" and name.startswith("sun.gc.generation.") and ".space." in name and name.endswith(".used"):
            used += _VALUE.unpack_from(content, offset + value_offset)[0]
        offset += length
    return used
