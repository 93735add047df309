"""WebDriver BiDi: commands and events over one websocket (W3C WebDriver BiDi)."""

import contextlib
import ctypes
import json
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import websocket

_CLONE_NEWNET = 0x40000000
_CONNECT_TIMEOUT_S = 10.0
_MAX_EVENTS = 200_000


class BidiError(Exception):
    """A command failed, or the browser is gone."""


class BidiSession:
    """One session.

    Args:
        port: of the browser, on the loopback of its network namespace.
        network_pid: a process in that namespace.
    """

    def __init__(self, port: int, *, network_pid: int) -> None:
        plain = socket_in_network_of(network_pid, "127.0.0.1", port)
        try:
            self._socket = websocket.create_connection(
                f"ws://127.0.0.1:{port}/session", timeout=_CONNECT_TIMEOUT_S, suppress_origin=True, socket=plain
            )
        except (OSError, websocket.WebSocketException) as error:
            plain.close()
            raise BidiError(f"no session: {error}") from error
        self._number = 0
        self._events: list[dict[str, Any]] = []

    def command(self, method: str, *, timeout_s: float = 30.0, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401
        """Send a command and wait for its result; events that come meanwhile are kept.

        Raises:
            BidiError: the browser refused it, did not answer in time, or is gone.
        """
        self._number += 1
        deadline = time.monotonic() + timeout_s
        try:
            self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
            while True:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
                message = json.loads(self._socket.recv())
                if message.get("id") == self._number:
                    break
                self._keep(message)
        except websocket.WebSocketTimeoutException:
            raise BidiError(f"no answer within {timeout_s:g} s") from None
        except (OSError, ValueError, websocket.WebSocketException) as error:
            raise BidiError(f"the connection to the browser is gone: {error}") from error
        if message.get("type") != "success":
            raise BidiError(str(message.get("message") or message.get("error")).splitlines()[0])
        result: dict[str, Any] = message["result"]
        return result

    def events(self) -> list[dict[str, Any]]:
        """The events since the last call."""
        taken, self._events = self._events, []
        return taken

    def close(self) -> None:
        """Close the connection; the browser goes on."""
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self._socket.close()

    def __enter__(self) -> Self:
        """Nothing more to do."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _keep(self, message: dict[str, Any]) -> None:
        if message.get("type") == "event" and len(self._events) < _MAX_EVENTS:
            self._events.append(message)


def socket_in_network_of(pid: int, host: str, port: int) -> socket.socket:
    """A TCP connection made in the network namespace of the process `pid`.

    A thread enters the namespace and ends there; the socket stays in it.

    Raises:
        BidiError: no connection.
    """
    made: list[socket.socket] = []
    problems: list[OSError] = []

    def connect() -> None:
        try:
            _enter_network_of(pid)
            made.append(socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT_S))
        except OSError as error:
            problems.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if problems:
        raise BidiError(f"no connection to {host}:{port} in the network of process {pid}: {problems[0]}")
    return made[0]


def _enter_network_of(pid: int) -> None:
    """Move this thread into the network namespace of a process."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
