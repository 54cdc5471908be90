"""What processes carry over TCP, from what `ss` says and over a connection of the test's own."""

import os
import shutil
import socket
from collections.abc import Iterator

import pytest

from harness.network_usage import Traffic, TrafficCounter, parse

# Of a real machine, shortened: an accepted connection, one that has carried nothing, and one that nobody has accepted.
LISTED = """\
0 0 127.0.0.1:45678 127.0.7.1:9042 ino:1001 sk:1 <-> cubic rto:204 bytes_sent:300 bytes_acked:301 bytes_received:4000
0 0 127.0.7.1:9042 127.0.0.1:45678 uid:1000 ino:1002 sk:2 <-> cubic rto:204 bytes_acked:1 segs_in:2
0 0 127.0.7.1:9042 127.0.0.1:45680 ino:0 sk:3 <-> cubic rto:204 bytes_received:77
"""


def test_connections_are_known_by_their_sockets() -> None:
    assert parse(LISTED) == {1001: Traffic(4000, 300), 1002: Traffic()}


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client and a server of this process."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        server, _ = listening.accept()
        with server:
            yield client, server


def test_counts_go_on_when_a_connection_has_ended(connection: tuple[socket.socket, socket.socket]) -> None:
    client, server = (os.fstat(of.fileno()).st_ino for of in connection)
    counter, ours = TrafficCounter(), [os.getpid()]
    counter.add({client: Traffic(10, 1), server: Traffic(1, 10), 7: Traffic(99, 99)}, ours)
    assert counter.add({client: Traffic(15, 1)}, ours) == {os.getpid(): Traffic(16, 11)}
    # Its socket's number is another one's now.
    assert counter.add({client: Traffic(2, 0)}, ours) == {os.getpid(): Traffic(18, 11)}


def test_connections_of_others_are_nobodys(connection: tuple[socket.socket, socket.socket]) -> None:
    client = os.fstat(connection[0].fileno()).st_ino
    assert TrafficCounter().add({client: Traffic(10, 1)}, []) == {}


def test_the_kernel_says_what_a_process_has_carried(connection: tuple[socket.socket, socket.socket]) -> None:
    assert shutil.which("ss"), "`ss` is missing: `make test-harness` installs iproute2"
    client, server = connection
    counter = TrafficCounter()
    before = counter.count([os.getpid()]).get(os.getpid(), Traffic())
    client.sendall(bytes(5000))
    received = 0
    while received < 5000:
        received += len(server.recv(5000))
    assert counter.count([os.getpid()])[os.getpid()].since(before) == Traffic(5000, 5000)
