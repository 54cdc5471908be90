"""MariaDB behind the interface of stores: a server for each run, and a class for each way to read single rows."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from harness.steps import Place, Service
from harness.stores.base import Store
from harness.stores.programs import installed

HOST = "127.0.0.1"
# Not MySQL's own, where a server of somebody else may listen.
PORT = 13306
DIRECT_PORT = 19998
# For reads, and as many for writes; more threads than this wait for each other.
CONNECTIONS = 256

# What InnoDB keeps of the rows in memory, and which part of a limit of the server's memory.
BUFFER_POOL_MIB = 1024
BUFFER_POOL_PART = 0.5
# How the first packet of the server begins, behind its length: the version of the protocol.
_GREETING = 10
_LENGTH_BYTES = 4


class Mysql(Store):
    """InnoDB, single rows by SQL."""

    name = "mysql"
    title = "MySQL, SQL"
    colour = "c8"
    access: ClassVar[str] = "jdbc"
    packages = ("mariadb-server",)
    # Its data are made first.
    starting_seconds = 6.0
    loads_per_s = 5_000.0
    writes_per_s = 10_000.0
    least_memory_mib = 256

    @property
    def client(self) -> str:
        return "store-mysql"

    def properties(self, place: Place, durability: str) -> Sequence[str]:
        password = _directory(place) / "node1" / "mysql" / "password"
        given = (
            f"store.directory={place.scratch / 'store'}", f"store.durability={durability}", f"store.host={HOST}",
            f"store.port={PORT}", f"store.password_file={password}", f"store.connections={CONNECTIONS}",
            f"store.access={self.access}",
        )  # fmt: skip
        if self.access != "direct":
            return given
        return (*given, f"store.direct_port={DIRECT_PORT}", f"store.direct_secret_file={password}")

    def services(self, place: Place, durability: str, memory_bytes: int = 0) -> Sequence[Service]:
        limit_mib = memory_bytes >> 20
        buffer_pool_mib = int(limit_mib * BUFFER_POOL_PART) or BUFFER_POOL_MIB
        command = (
            "env", f"DURABILITY={durability}", f"ACCESS={self.access}", f"SERVER_MEMORY_MB={buffer_pool_mib}",
            str(_keeper(place)), str(_directory(place)), str(PORT), str(DIRECT_PORT),
        )  # fmt: skip
        return (Service("mariadbd", command, self._answers, seconds_to_start=120, memory_bytes=memory_bytes or None),)

    def programs(self, place: Place) -> Sequence[Path]:
        scripts = (_keeper(place), place.checkout / "scripts" / "cluster-servers.sh")
        return (*scripts, installed("mariadbd"), installed("mariadb-install-db"))

    def disk_bytes(self, held_bytes: float) -> float:
        # Pages that are half full, each written twice, and the log.
        return 500e6 + 2 * held_bytes

    def _answers(self) -> bool:
        return _greets(PORT) and (self.access != "direct" or _listens(DIRECT_PORT))


class MysqlDirect(Mysql):
    """Below SQL, through the plugin HandlerSocket."""

    name = "mysql-direct"
    title = "MySQL, HandlerSocket"
    access = "direct"


class MysqlHandler(Mysql):
    """By the statement `HANDLER`, which plans nothing."""

    name = "mysql-handler"
    title = "MySQL, HANDLER"
    access = "handler"


class MysqlProcedure(Mysql):
    """By a stored procedure."""

    name = "mysql-procedure"
    title = "MySQL, procedure"
    access = "procedure"


def _directory(place: Place) -> Path:
    return place.scratch / "mysql"


def _keeper(place: Place) -> Path:
    return place.checkout / "harness" / "keep-mysql.sh"


def _greets(port: int) -> bool:
    """Whether a server there has begun to talk; one that still runs what it does first only listens."""
    try:
        with socket.create_connection((HOST, port), timeout=1) as connection:
            greeting = connection.recv(_LENGTH_BYTES + 1)
            return len(greeting) > _LENGTH_BYTES and greeting[_LENGTH_BYTES] == _GREETING
    except OSError:
        return False


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1):
            return True
    except OSError:
        return False
