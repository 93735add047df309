"""Send commands and receive events over one connection: the common part of WebDriver BiDi and Chromium's DevTools."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

import websocket

from mplab.base.browser import Event
from mplab.base.files import Closing
from mplab.base.polling import wait_until

CONNECT_TIMEOUT_S = 10.0
_MAX_EVENTS = 200_000
_PIPE_BYTES = 1 << 20
_POLL_S = 0.05


Answer: TypeAlias = dict[str, Any]
"""Message of a browser: the result of a command, or an event."""


class SessionError(Exception):
    """A command failed, or the browser has ended."""


class BrowserChannel(Protocol):
    """A connection for messages; its methods raise OSError or an error of websocket-client."""

    def settimeout(self, timeout: float, /) -> None:
        """Set the maximum time that `recv` waits, seconds."""

    def send(self, message: str, /) -> object:
        """Send a message."""

    def recv(self) -> str | bytes:
        """Return the next message; empty: the browser has closed the connection."""

    def close(self) -> None:
        """Close the connection."""


def websocket_to(url: str, plain: socket.socket) -> BrowserChannel:
    """Return a websocket to a browser or to one of its pages.

    Args:
        url: URL of the websocket.
        plain: TCP or Unix connection to the host of `url`; it is closed with the websocket.

    Raises:
        SessionError: the browser does not accept the websocket.
    """
    try:
        channel: BrowserChannel = websocket.create_connection(
            url, timeout=CONNECT_TIMEOUT_S, suppress_origin=True, socket=plain
        )
    except (OSError, websocket.WebSocketException) as error:
        plain.close()
        raise SessionError(f"no session: {error}") from error
    return channel


class Pipe:
    """A connection to Chromium that was started with ``--remote-debugging-pipe``, see `BrowserChannel`.

    A zero byte ends each message.

    Args:
        plain: connected socket; the other end is the browser's file descriptors 3 and 4. It is closed with the pipe.
    """

    def __init__(self, plain: socket.socket) -> None:
        self._plain = plain
        self._received = bytearray()

    def settimeout(self, timeout: float, /) -> None:
        """Set the maximum time that `recv` waits for the next bytes, seconds."""
        self._plain.settimeout(timeout)

    def send(self, message: str, /) -> None:
        """Send a message."""
        self._plain.sendall(message.encode() + b"\0")

    def recv(self) -> bytes:
        """Return the next message, see `BrowserChannel`. Raises WebSocketTimeoutException: it is late."""
        searched = 0
        while (end := self._received.find(0, searched)) < 0:
            searched = len(self._received)
            try:
                received = self._plain.recv(_PIPE_BYTES)
            except TimeoutError as error:
                raise websocket.WebSocketTimeoutException from error
            if not received:
                return b""
            self._received += received
        message = bytes(self._received[:end])
        del self._received[: end + 1]
        return message

    def close(self) -> None:
        """Close the connection; the browser then ends."""
        self._plain.close()


class BrowserSession(Closing):
    """A session with a browser (WebDriver BiDi) or with one page (DevTools).

    Args:
        channel: connection to the browser; it is closed with the session.
    """

    def __init__(self, channel: BrowserChannel) -> None:
        self._channel = channel
        self._page: Answer = {}
        self._number = 0
        self._events: list[Answer] = []

    def attach(self, *, timeout_s: float) -> None:
        """Direct all further commands to the first page of the browser; wait until there is a page.

        Needed only for a connection to the whole browser, such as a `Pipe`.

        Raises:
            SessionError: the browser has no page after `timeout_s`, or has ended.
        """
        pages = wait_until(lambda: self._pages(timeout_s), timeout_s, interval_s=_POLL_S)
        if not pages:
            raise SessionError(f"no page after {timeout_s:g} s")
        answer = self.command("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self._page = {"sessionId": answer["sessionId"]}

    def _pages(self, timeout_s: float) -> list[Answer]:
        targets = self.command("Target.getTargets", timeout_s=timeout_s)["targetInfos"]
        return [target for target in targets if target["type"] == "page"]

    def command(self, method: str, *, timeout_s: float = 30.0, **parameters: object) -> Answer:
        """Send a command and return its result. The method `events` returns the events that arrive in the meantime.

        Raises:
            SessionError: the browser refused, did not answer in time, or has ended.
        """
        self._number += 1
        deadline = time.monotonic() + timeout_s
        with self._explained(f"no answer within {timeout_s:g} s"):
            self._channel.send(json.dumps({"id": self._number, "method": method, "params": parameters} | self._page))
            while (message := self._receive(deadline)).get("id") != self._number:
                self._keep(message)
        if problem := _problem(message):
            raise SessionError(problem)
        result: Answer = message["result"]
        return result

    def wait(self, holds: Callable[[Event], bool], *, timeout_s: float, late: str) -> None:
        """Wait for an event for which `holds` returns true.

        An event that arrived earlier counts, too, if the method `events` has not returned it yet. `events` still
        returns all events later.

        Args:
            holds: returns whether an event is the expected one.
            timeout_s: maximum time, seconds.
            late: text of the error when no such event arrives in time.

        Raises:
            SessionError: no such event arrived in time, or the browser has ended.
        """
        deadline = time.monotonic() + timeout_s
        seen = 0
        with self._explained(late):
            while not any(map(holds, self._events[seen:])):
                seen = len(self._events)
                self._keep(self._receive(deadline))

    def events(self) -> list[Answer]:
        """Return the events that arrived since the last call: the first 200,000; further ones were dropped."""
        taken, self._events = self._events, []
        return taken

    def close(self) -> None:
        """Close the connection; the browser continues to run."""
        with contextlib.suppress(OSError, websocket.WebSocketException):
            self._channel.close()

    def _receive(self, deadline: float) -> Answer:
        left_s = deadline - time.monotonic()
        if left_s <= 0:  # also needed when a browser sends events all the time
            raise websocket.WebSocketTimeoutException
        self._channel.settimeout(left_s)
        text = self._channel.recv()
        if not text:
            raise SessionError("the browser has closed the connection")
        message: Answer = json.loads(text)
        return message

    def _keep(self, message: Answer) -> None:
        if "id" not in message and "method" in message and len(self._events) < _MAX_EVENTS:
            self._events.append(message)

    @contextlib.contextmanager
    def _explained(self, late: str) -> Iterator[None]:
        try:
            yield
        except websocket.WebSocketTimeoutException:
            raise SessionError(late) from None
        except (OSError, ValueError, websocket.WebSocketException) as error:
            raise SessionError(f"the connection to the browser is gone: {error}") from error


def _problem(answer: Answer) -> str:
    """Return the first line of the error in the browser's answer to a command; "": the command succeeded.

    BiDi answers with ``error`` (a word) and ``message``; DevTools answers with an object ``error``.
    """
    error = answer.get("error")
    if error is None:
        return ""
    text = error.get("message") if isinstance(error, dict) else answer.get("message")
    return str(text or error).splitlines()[0]
