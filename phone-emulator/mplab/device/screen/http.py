"""Serve HTTP/1.1 on one connection, for the servers of UI test frameworks on the emulated device."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import h11

_LOG = logging.getLogger(__name__)
_READ_BYTES = 65_536
_LARGEST_BODY = 16_000_000


@dataclass(frozen=True)
class Answer:
    """The answer to an HTTP request; `kind` is the media type of its body."""

    body: bytes
    status: int = 200
    kind: str = "application/json; charset=utf-8"


Handler = Callable[[str, str, bytes], Awaitable[Answer]]
"""Function that returns the answer to a request with this method, path and body."""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler) -> None:
    """Answer the HTTP requests on a connection one after the other, until the client closes it."""
    connection = h11.Connection(h11.SERVER)
    try:
        while (request := await _request(connection, reader)) is not None:
            method, path, body = request
            answer = await handler(method, path, body)
            await _send(connection, writer, answer, method)
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                break
            connection.start_next_cycle()
    except (h11.ProtocolError, ConnectionError) as error:
        _LOG.debug("connection lost: %s", error)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> tuple[str, str, bytes] | None:
    method, path, body = "", "", b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(_READ_BYTES))
        elif isinstance(event, h11.Request):
            method, path = event.method.decode(), event.target.decode(errors="replace")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _LARGEST_BODY:
                raise h11.RemoteProtocolError("body too large", error_status_hint=413)
        elif isinstance(event, h11.EndOfMessage):
            return method, path, body
        else:  # ConnectionClosed, PAUSED
            return None


async def _send(connection: h11.Connection, writer: asyncio.StreamWriter, answer: Answer, method: str) -> None:
    headers = [("Content-Type", answer.kind), ("Content-Length", str(len(answer.body)))]
    parts = [connection.send(h11.Response(status_code=answer.status, headers=headers, reason=b""))]
    if method != "HEAD":
        parts.append(connection.send(h11.Data(data=answer.body)))
    parts.append(connection.send(h11.EndOfMessage()))
    writer.write(b"".join(part for part in parts if part))
    await writer.drain()
