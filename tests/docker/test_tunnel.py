"""Many connections over one SSH login, to a program that echoes its input."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.tunnel import Tunnel
from tests.docker.ssh import SshServer

MANY = 64
"""Number of connections that compose 1.29 opens at the same time."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    if os.geteuid() != 0:
        pytest.skip("the SSH server of the tests needs root")
    if reason := SshServer.why_not():
        pytest.skip(reason)
    with SshServer(tmp_path / "ssh", "cat") as server:
        server.use(monkeypatch)
        yield server


def ask(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    received = b""
    while len(received) < len(word) and (more := connection.recv(4096)):
        received += more
    return received


def test_many_at_once(server: SshServer) -> None:
    before = set(psutil.Process().children(recursive=True))
    with closing(Tunnel(server.url)) as tunnel, ExitStack() as stack:
        connections = []
        for _ in range(MANY):
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(30)
            connection.connect(tunnel.url.removeprefix("unix://"))
            connections.append(connection)
        for number, connection in enumerate(connections):
            assert ask(connection, b"%d\n" % number) == b"%d\n" % number
    left = set(psutil.Process().children(recursive=True)) - before
    assert [process.name() for process in left if process.is_running() and process.name() == "ssh"] == []


def test_a_server_that_goes_away_ends_every_connection(server: SshServer) -> None:
    with closing(Tunnel(server.url)) as tunnel, socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(tunnel.url.removeprefix("unix://"))
        assert ask(connection, b"here\n") == b"here\n"
        server.drop()
        assert connection.recv(1) == b""
        with pytest.raises(LabNotReadyError, match="refused"):
            Tunnel(server.url)
