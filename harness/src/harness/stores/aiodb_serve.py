"""`aiodb serve` of its own for each run: the engine behind the Redis protocol."""

import functools
from collections.abc import Sequence
from pathlib import Path

from harness.steps import Place, Service
from harness.stores.base import Store
from harness.stores.redis import HOST, Redis, answers

# Not that of `redis-server` in this harness.
PORT = 16380

# As often as Redis's `everysec`.
_CLASSES = {"sync": "sync", "interval": "interval:1000", "none": "none"}


class AiodbServe(Store):
    """This project's server. YCSB's binding of Redis talks to it."""

    name = "aiodb-serve"
    title = "aiodb serve"
    colour = "c7"

    @property
    def client(self) -> str:
        return Redis.name

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        return (f"redis.host={HOST}", f"redis.port={PORT}")

    def programs(self, place: Place) -> Sequence[Path]:
        return (place.aiodb,)

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        command = (
            str(place.aiodb), "serve", str(place.scratch / "store"), "--bind", HOST, "--port", str(PORT),
            "--durability", _CLASSES[durability],
        )  # fmt: skip
        ready = functools.partial(answers, PORT)
        return (Service("aiodb-serve", command, ready, seconds_to_start=60, memory_bytes=memory_bytes or None),)
