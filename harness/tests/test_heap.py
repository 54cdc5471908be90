"""The counters of virtual machines."""

import struct

import pytest

from harness.heap import heap_bytes, heap_of

HEAD = struct.Struct("<4sBBBBIIQII")


def entry(name: str, value: int, kind: bytes = b"J") -> bytes:
    """An entry as virtual machines write it: head, name, padding, value."""
    words = name.encode() + b"\0"
    words += b"\0" * (-len(words) % 8)
    return (
        struct.pack("<IIIcBBBI", 20 + 4 + len(words) + 8, 24, 0, kind, 0, 1, 1, 24 + len(words))
        + b"\0" * 4
        + words
        + (struct.pack("<q", value))
    )


def counters(*entries: bytes) -> bytes:
    return HEAD.pack(b"\xca\xfe\xc0\xc0", 1, 2, 0, 1, 0, 0, 0, HEAD.size, len(entries)) + b"".join(entries)


def test_the_heap_is_the_sum_of_its_spaces() -> None:
    content = counters(
        entry("sun.gc.generation.0.space.0.used", 1000),
        entry("sun.gc.generation.0.space.0.capacity", 7),
        entry("java.ci.totalTime", 7),
        entry("sun.gc.generation.1.space.0.used", 234),
        entry("sun.gc.generation.1.name", 7, b"B"),
        entry("sun.gc.metaspace.used", 7),
    )
    assert heap_of(content) == 1234


ENDLESS = HEAD.pack(b"\xca\xfe\xc0\xc0", 1, 2, 0, 1, 0, 0, 0, HEAD.size, 1) + b"\0" * 64


@pytest.mark.parametrize(
    "content", [b"", b"something else that is long enough", counters(entry("a", 1))[:-30], ENDLESS]
)
def test_what_is_no_such_file_is_refused(content: bytes) -> None:
    with pytest.raises((struct.error, ValueError)):
        heap_of(content)


def test_a_process_that_is_no_virtual_machine_has_no_heap() -> None:
    assert heap_bytes(1) == 0
