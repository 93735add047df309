"""Forward connections to TCP and unix sockets through adb: to the device (forward), or to the host (reverse)."""

import asyncio
import contextlib
import socket

from mplab.device.adbd.backend import Backend
from mplab.device.adbd.connection import Connection
from mplab.device.adbd.stream import Stream

_BLOCK = 64 * 1024
_OWNER = "host-1"
"""First word of each line of ``adb reverse --list``: the name of adb's connection."""


async def join(stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes between a stream of adb and a socket, in both directions, until one ends; then close the socket."""

    async def outwards() -> None:
        while block := await reader.read(_BLOCK):
            await stream.write(block)

    async def inwards() -> None:
        while block := await stream.read():
            writer.write(block)
            await writer.drain()

    tasks = [asyncio.create_task(outwards()), asyncio.create_task(inwards())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _Reverse:
    """A listening socket on the device whose connections are forwarded to an address on the host."""

    def __init__(self, backend: Backend, connection: Connection, local: str, remote: str) -> None:
        self.local, self.remote = local, remote
        self._connection = connection
        self._socket = backend.listen(local)
        self._server: asyncio.Server | None = None
        self.port = self._socket.getsockname()[1] if self._socket.family == socket.AF_INET else 0

    async def start(self) -> None:
        """Start to accept connections on the device."""
        start = asyncio.start_server if self._socket.family == socket.AF_INET else asyncio.start_unix_server
        self._server = await start(self._accepted, sock=self._socket)

    def close(self) -> None:
        """Close the listening socket."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = await self._connection.open(self.remote)
        if stream is None:
            writer.close()
            return
        with contextlib.suppress(ConnectionError):
            await join(stream, reader, writer)
        self._connection.forget(stream)


class ReverseService:
    """The listening sockets that one host has opened with ``adb reverse``. They are closed when it disconnects."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._table: dict[str, _Reverse] = {}

    async def serve(self, connection: Connection, stream: Stream, command: str) -> None:
        """Handle a command of ``adb reverse``: ``forward:…``, ``killforward:…``, ``killforward-all``, ``list-forward``.

        The answer is written to `stream`.
        """
        if self._close_all not in connection.on_close:
            connection.on_close.append(self._close_all)
        verb, _, argument = command.partition(":")
        if verb == "list-forward":
            lines = "".join(f"{_OWNER} {entry.local} {entry.remote}\n" for entry in self._table.values())
            await stream.write(_sized(lines))
        elif verb == "killforward-all":
            self._close_all()
            await stream.write(b"OKAY")
        elif verb == "killforward":
            await stream.write(self._remove(argument))
        elif verb == "forward":
            await stream.write(await self._add(connection, argument))
        else:
            await stream.write(_failure(f"unknown command {verb!r}"))

    async def _add(self, connection: Connection, pair: str) -> bytes:
        keep = pair.startswith("norebind:")
        local, separator, remote = pair.removeprefix("norebind:").partition(";")
        if not separator:
            return _failure("bad forward: LOCAL;REMOTE is needed")
        if local in self._table and keep:
            return _failure("cannot rebind existing socket")
        if local in self._table:
            self._table[local].remote = remote
            return b"OKAY"
        try:
            entry = _Reverse(self._backend, connection, local, remote)
        except (OSError, ValueError) as error:
            return _failure(f"cannot bind listener: {getattr(error, 'strerror', None) or error}")
        await entry.start()
        if local != "tcp:0":
            self._table[local] = entry
            return b"OKAY"
        entry.local = f"tcp:{entry.port}"
        self._table[entry.local] = entry
        return b"OKAY" + _sized(str(entry.port))

    def _remove(self, local: str) -> bytes:
        entry = self._table.pop(local, None)
        if entry is None:
            return _failure(f"listener '{local}' not found")
        entry.close()
        return b"OKAY"

    def _close_all(self) -> None:
        for entry in self._table.values():
            entry.close()
        self._table.clear()


def _failure(text: str) -> bytes:
    return b"FAIL" + _sized(text)


def _sized(text: str) -> bytes:
    data = text.encode()
    return b"%04x" % len(data) + data
