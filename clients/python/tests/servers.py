"""Servers of the tests: `aiodb serve`, and a real redis-server beside it, which shows where a test itself is wrong."""

import os
import socket
import subprocess
import time
from pathlib import Path

import redis

START_SECONDS = 60


class Server:
    """A server at a free port of this machine, with its files in a directory."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self.port = free_port()
        self.start()

    def start(self) -> None:
        """Starts it, at first or again, and waits until it answers."""
        with (self.directory / "server.log").open("ab") as log:
            self._process = subprocess.Popen(self._command(), cwd=self.directory, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.kind} does not start: see {self.directory}/server.log")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends it and waits until it is gone."""
        self._process.terminate()
        self._process.wait()

    def url(self, database: int = 0) -> str:
        return f"redis://127.0.0.1:{self.port}/{database}"

    def client(self, **options: object) -> redis.Redis:
        """A client of its own; the caller closes it."""
        return redis.Redis(host="127.0.0.1", port=self.port, **options)

    def _command(self) -> list[str]:
        if self.kind == "aiodb":
            return [os.environ["AIODB"], "serve", "data", "--port", str(self.port)]
        return [
            *("redis-server", "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--save", "", "--appendonly", "yes"),
        ]

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.exceptions.ConnectionError:
            return False


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
