"""The device answers a host that closes a stream, as adbd does: some clients wait for the answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mplab.device.adbd.connection import Connection
from mplab.device.adbd.message import CLSE, CNXN, OKAY, OPEN, VERSION, AdbMessage, read_message
from mplab.device.adbd.stream import Stream

_TIMEOUT_S = 10.0
HOST_STREAM = 7


class Open:
    """A device that trusts every host."""

    trusted_keys = None
    banner = b"device::"

    async def delay(self) -> None:
        """Return at once."""


class Host:
    """A host's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, command: int, arg0: int, arg1: int, payload: bytes = b"") -> None:
        self._writer.write(AdbMessage(command, arg0, arg1, payload).encode(checksum=True))

    async def receive(self) -> AdbMessage:
        return await asyncio.wait_for(read_message(self._reader, checksum=False), _TIMEOUT_S)


def with_host(serve: Callable[..., Awaitable[None]], talk: Callable[[Host], Awaitable[None]]) -> None:
    """Let a host talk to a device whose streams are served by `serve`."""

    async def main() -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            backend: Any = Open()
            await Connection(reader, writer, backend, serve).run()

        async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            host = Host(reader, writer)
            host.send(CNXN, VERSION, 65536, b"host::")
            assert (await host.receive()).command == CNXN
            await talk(host)
            writer.close()

    asyncio.run(main())


async def until_closed(connection: Connection, stream: Stream, _address: str) -> None:
    """Accept the stream and run until the host closes it."""
    connection.accept(stream)
    await stream.wait_closed()


async def refused(_connection: Connection, _stream: Stream, _address: str) -> None:
    """Return without accepting the stream, as for an unknown service."""


def test_the_close_of_a_stream_is_answered_once() -> None:
    async def talk(host: Host) -> None:
        host.send(OPEN, HOST_STREAM, 0, b"sync:\0")
        okay = await host.receive()
        assert (okay.command, okay.arg1) == (OKAY, HOST_STREAM)
        host.send(CLSE, HOST_STREAM, okay.arg0)
        closed = await host.receive()
        assert (closed.command, closed.arg0, closed.arg1) == (CLSE, 0, HOST_STREAM)
        host.send(CLSE, HOST_STREAM, okay.arg0)  # this stream is closed already
        host.send(OPEN, HOST_STREAM + 1, 0, b"sync:\0")
        assert (await host.receive()).command == OKAY, "nothing came between"

    with_host(until_closed, talk)


@pytest.mark.parametrize("answer", [HOST_STREAM, 0])
def test_the_close_of_a_stream_that_the_device_has_closed_is_not_answered(answer: int) -> None:
    async def talk(host: Host) -> None:
        host.send(OPEN, HOST_STREAM, 0, b"nonsense:\0")
        closed = await host.receive()
        assert (closed.command, closed.arg1) == (CLSE, HOST_STREAM)
        host.send(CLSE, answer, closed.arg0)
        host.send(OPEN, HOST_STREAM + 1, 0, b"nonsense:\0")
        assert (await host.receive()).arg1 == HOST_STREAM + 1

    with_host(refused, talk)
