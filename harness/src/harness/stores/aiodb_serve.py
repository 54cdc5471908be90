"""`aiodb serve`: the engine behind the Redis protocol."""

from collections.abc import Sequence
from pathlib import Path

from harness.steps import Place
from harness.stores.redis import HOST, RedisProtocol

# As often as Redis's `everysec`.
_CLASSES = {"sync": "sync", "interval": "interval:1000", "none": "none"}


class AiodbServe(RedisProtocol):
    """This project's server."""

    name = "aiodb-serve"
    title = "aiodb serve"
    colour = "c7"
    port = 16380

    def programs(self, place: Place) -> Sequence[Path]:
        return (place.aiodb,)

    def command(self, place: Place, durability: str) -> Sequence[str]:
        return (
            str(place.aiodb), "serve", str(place.scratch / "store"), "--bind", HOST, "--port", str(self.port),
            "--durability", _CLASSES[durability],
        )  # fmt: skip
