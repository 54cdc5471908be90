"""Servers of the Redis protocol, one of its own for each run, asked by YCSB's binding of Redis or by that of stores."""

import functools
import socket
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.steps import Place, Service
from harness.stores.base import Store
from harness.stores.programs import installed

HOST = "127.0.0.1"

_FSYNC = {"sync": "always", "interval": "everysec", "none": "no"}


class RedisProtocol(Store):
    """What such servers have in common."""

    # Not Redis's own, where a server of somebody else may listen, and one for each kind.
    port: ClassVar[int]

    @property
    def client(self) -> str:
        return "redis"

    @abstractmethod
    def command(self, place: Place, durability: str) -> Sequence[str]:
        """What starts it."""

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (f"redis.host={HOST}", f"redis.port={self.port}")

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        command, ready = tuple(self.command(place, durability)), functools.partial(_answers, self.port)
        return (Service(Path(command[0]).name, command, ready, seconds_to_start=60, memory_bytes=memory_bytes or None),)


class Redis(RedisProtocol):
    """`redis-server` with every write in an append-only file, synchronised as the durability says."""

    name = "redis"
    title = "Redis"
    colour = "c4"
    port = 16379
    packages = ("redis-server",)

    def programs(self, place: Place) -> Sequence[Path]:
        return (installed("redis-server"),)

    def command(self, place: Place, durability: str) -> Sequence[str]:
        return (
            "redis-server", "--bind", HOST, "--port", str(self.port), "--dir", str(place.scratch), "--daemonize", "no",
            "--save", "", "--appendonly", "yes", "--appendfsync", _FSYNC[durability],
        )  # fmt: skip


class RedisStore(Redis):
    """The same server behind the interface of stores, asked as MySQL is."""

    name = "redis-store"
    title = "Redis as a store"
    port = 16382
    # Each write is a script, which sets the row and its place in the order of keys.
    loads_per_s = 10_000.0

    @property
    def client(self) -> str:
        return "store-redis"

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (
            f"store.directory={place.scratch / 'store'}",
            f"store.durability={durability}",
            f"store.host={HOST}",
            f"store.port={self.port}",
        )


def _answers(port: int) -> bool:
    """Whether a server there answers a PING; while Redis loads its log it refuses."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
