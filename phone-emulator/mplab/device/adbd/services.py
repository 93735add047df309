"""Serve the streams that hosts open: ``shell:``, ``sync:``, ``tcp:PORT``, … (SERVICES.TXT)."""

from mplab.device.adbd.backend import Backend
from mplab.device.adbd.connection import Connection
from mplab.device.adbd.forward import ReverseService, join
from mplab.device.adbd.shell import serve_exec, serve_shell
from mplab.device.adbd.stream import Stream
from mplab.device.adbd.sync import SyncService

_SOCKETS = ("tcp:", "localabstract:", "localfilesystem:", "localreserved:", "local:")


class Services:
    """Services of adbd for the streams of one host."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._reverse = ReverseService(backend)

    async def serve(self, connection: Connection, stream: Stream, address: str) -> None:
        """Serve a stream that the host has opened to `address`, until it ends. Unknown addresses are refused."""
        kind, _, argument = address.partition(":")
        if kind.split(",")[0] == "shell":
            connection.accept(stream)
            await serve_shell(self._backend, stream, kind.split(",")[1:], argument)
        elif kind == "exec":
            connection.accept(stream)
            await serve_exec(self._backend, stream, argument)
        elif kind == "sync":
            connection.accept(stream)
            await SyncService(self._backend, stream).serve()
        elif address.startswith(_SOCKETS):
            await self._dial(connection, stream, address)
        elif kind == "reverse":
            connection.accept(stream)
            await self._reverse.serve(connection, stream, argument)
        else:
            await self._ask(connection, stream, address)

    async def _dial(self, connection: Connection, stream: Stream, address: str) -> None:
        try:
            reader, writer = await self._backend.dial(address)
        except (OSError, ValueError):
            return
        connection.accept(stream)
        await join(stream, reader, writer)

    async def _ask(self, connection: Connection, stream: Stream, address: str) -> None:
        try:
            answer = self._backend.request(address)
        except ValueError:
            return
        connection.accept(stream)
        await stream.write(answer.encode())
