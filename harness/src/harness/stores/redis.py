"""A Redis server of its own for each run, with every write in its log."""

import functools
import socket
from collections.abc import Sequence
from pathlib import Path

from harness.steps import Place, Service
from harness.stores.base import Store
from harness.stores.programs import installed

HOST = "127.0.0.1"
# Not Redis's own port, where a server of somebody else may listen.
PORT = 16379

_FSYNC = {"sync": "always", "interval": "everysec", "none": "no"}


class Redis(Store):
    """`redis-server` with an append-only file, synchronised as the durability says."""

    name = "redis"
    title = "Redis"
    colour = "c4"
    packages = ("redis-server",)

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (f"redis.host={HOST}", f"redis.port={PORT}")

    def programs(self, place: Place) -> Sequence[Path]:
        return (installed("redis-server"),)

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        command = (
            "redis-server", "--bind", HOST, "--port", str(PORT), "--dir", str(place.scratch), "--daemonize", "no",
            "--save", "", "--appendonly", "yes", "--appendfsync", _FSYNC[durability],
        )  # fmt: skip
        ready = functools.partial(answers, PORT)
        return (Service("redis-server", command, ready, seconds_to_start=60, memory_bytes=memory_bytes or None),)


def answers(port: int) -> bool:
    """Whether a server there answers a PING; while Redis loads its log it refuses."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
