"""Send commands and receive events over one websocket: the common part of WebDriver BiDi and Chromium's DevTools."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import websocket

from mplab.base.browser import Event
from mplab.base.files import Closing

CONNECT_TIMEOUT_S = 10.0
_MAX_EVENTS = 200_000


Answer: TypeAlias = dict[str, Any]
"""Message of a browser: the result of a command, or an event."""


class SessionError(Exception):
    """A command failed, or the browser has ended."""


class BrowserSession(Closing):
    """A session over a websocket: with a browser (WebDriver BiDi) or with one page (DevTools).

    Args:
        url: URL of the websocket.
        plain: TCP or Unix connection to the host of `url`; it is closed with the session.

    Raises:
        SessionError: the session did not start.
    """

    def __init__(self, url: str, plain: socket.socket) -> None:
        try:
            self._socket = websocket.create_connection(
                url, timeout=CONNECT_TIMEOUT_S, suppress_origin=True, socket=plain
            )
        except (OSError, websocket.WebSocketException) as error:
            plain.close()
            raise SessionError(f"no session: {error}") from error
        self._number = 0
        self._events: list[Answer] = []

    def command(self, method: str, *, timeout_s: float = 30.0, **parameters: object) -> Answer:
        """Send a command and return its result. The method `events` returns the events that arrive in the meantime.

        Raises:
            SessionError: the browser refused, did not answer in time, or has ended.
        """
        self._number += 1
        deadline = time.monotonic() + timeout_s
        with self._explained(f"no answer within {timeout_s:g} s"):
            self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
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
            self._socket.close()

    def _receive(self, deadline: float) -> Answer:
        left_s = deadline - time.monotonic()
        if left_s <= 0:  # also needed when a browser sends events all the time
            raise websocket.WebSocketTimeoutException
        self._socket.settimeout(left_s)
        text = self._socket.recv()
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
