"""Every test runs with `aiodb serve` and with redis-server, each started once and emptied before every test."""

from collections.abc import Iterator

import pytest
import redis
from servers import Server


@pytest.fixture(scope="session", params=["aiodb", "redis-server"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(request.param, tmp_path_factory.mktemp(request.param))
    yield server
    server.stop()


@pytest.fixture
def server(running: Server) -> Server:
    with running.client() as client:
        client.flushall()
    return running


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(server: Server, request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A client that speaks either version of the protocol."""
    with server.client(protocol=request.param, decode_responses=True) as client:
        yield client


@pytest.fixture
def without_streams(server: Server, request: pytest.FixtureRequest) -> None:
    """For what needs streams: fails with `aiodb serve`, as docs/server.md says."""
    if server.kind == "aiodb":
        request.applymarker(pytest.mark.xfail(raises=redis.exceptions.ResponseError, reason="there are no streams"))
