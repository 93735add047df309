"""The file store's server, on loopback."""

import hashlib
import http.client
import importlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from mplab.drivers.services import load_service

Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def server() -> ModuleType:
    """The module ``proxy-docker/mplab/services/upload/server.py``."""
    load_service("upload")
    return importlib.import_module("mplab.services.upload.server")


@pytest.fixture
def port(server: ModuleType) -> Iterator[int]:
    with server.make_server(0) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running.server_address[1]
        running.shutdown()
        thread.join()


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Log:
    """Return the records that the server has logged until now."""
    lines: list[str] = []

    def read() -> list[dict[str, Any]]:
        lines.extend(capsys.readouterr().out.splitlines())
        return [json.loads(line) for line in lines]

    return read


def put(port: int, target: str, body: bytes) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("PUT", target, body)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def test_a_block_is_counted_hashed_and_logged(port: int, log: Log) -> None:
    block = bytes(range(256)) * 4000
    status, answer = put(port, "/files/a%20b.bin?offset=4000", block)
    stored = {"name": "a b.bin", "offset": 4000, "bytes": len(block)}
    assert (status, answer) == (200, {**stored, "sha256": hashlib.sha256(block).hexdigest()})
    records = [record for record in log() if record["event"] != "request"]
    assert [record["event"] for record in records] == ["arrived", "stored"]
    assert {key: records[-1][key] for key in stored} == stored
    assert abs(records[-1]["t"] - time.time()) < 60


def test_what_arrives_is_logged_while_it_does(port: int, log: Log, server: ModuleType) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sender:
        sender.sendall(b"PUT /files/x HTTP/1.1\r\nHost: dropbox.lab\r\nContent-Length: 9\r\n\r\nabc")
        time.sleep(1.2 * server.LOG_EVERY_S)
        sender.sendall(b"def")
        time.sleep(1.2 * server.LOG_EVERY_S)
        sender.shutdown(socket.SHUT_WR)
        assert sender.recv(100) == b"", "no answer: it is not there"
    logged = [(record["event"], record["bytes"]) for record in log() if "bytes" in record]
    assert logged == [("arrived", 3), ("arrived", 6), ("cut", 6)]


@pytest.mark.parametrize("target", ["/files/", "/other/x", "/files/x?offset=-1"])
def test_what_is_not_a_block(port: int, target: str) -> None:
    status, answer = put(port, target, b"x")
    assert (status, answer["error"]) == (400, "PUT /files/NAME?offset=N with a length is needed")


def test_a_sign_of_life(port: int) -> None:
    statuses = []
    for path in ("/files/", "/"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("GET", path)
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [200, 404]
