"""Listen for connections of hosts, like adbd."""

import asyncio
import contextlib
import socket

from mplab.device.adbd.backend import Backend
from mplab.device.adbd.connection import Connection
from mplab.device.adbd.debian import Daemon, FilteredConnection
from mplab.device.adbd.message import MAX_PAYLOAD
from mplab.device.adbd.services import Services

_FINISH_S = 5.0


class EmulatedAdbd:
    """The device's adbd: a TCP server to which hosts connect.

    Args:
        backend: the device.
        host: IP address at which the server listens.
        port: TCP port; 0: any free port.
        command: command line that runs Debian's adbd in the device; "": this server handles all requests itself.
    """

    def __init__(self, backend: Backend, *, host: str = "127.0.0.1", port: int = 0, command: str = "") -> None:
        self._backend = backend
        self._host = host
        self.port = port
        self._server: asyncio.Server | None = None
        self._daemon = Daemon(backend, command) if command else None
        self._connections: dict[Connection, asyncio.Task[None]] = {}
        self.silent = False
        """True: accept connections but answer nothing, so that hosts report the device as offline."""

    @property
    def running(self) -> bool:
        """Return whether the server accepts connections."""
        return self._server is not None

    async def start(self) -> None:
        """Start to listen, and start Debian's adbd if it is used. Raises OSError, DeviceError."""
        sock = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._host, self.port))
            if self._daemon is not None:
                await self._daemon.start()
            self._server = await asyncio.start_server(self._connected, sock=sock, limit=MAX_PAYLOAD)
        except BaseException:
            sock.close()
            raise
        self.port = sock.getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, end all connections, and end Debian's adbd if it is used."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.disconnect()
        if self._daemon is not None:
            await self._daemon.stop()

    async def disconnect(self) -> None:
        """End all connections of hosts."""
        for connection in self._connections:
            connection.close()
        if self._connections:
            await asyncio.wait(set(self._connections.values()), timeout=_FINISH_S)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a connection's callback is one
        if self.silent:
            await self._ignore(reader, writer)
            return
        connection = self._connection(reader, writer)
        self._connections[connection] = task
        try:
            await connection.run()
        finally:
            self._connections.pop(connection, None)
            await connection.finish()

    def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Connection:
        serve = Services(self._backend).serve
        if self._daemon is None:
            return Connection(reader, writer, self._backend, serve)
        return FilteredConnection(reader, writer, self._backend, serve, self._daemon)

    async def _ignore(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while self.silent:
                with contextlib.suppress(TimeoutError):
                    if not await asyncio.wait_for(reader.read(65536), 0.2):
                        break
        except ConnectionError:
            pass
        finally:
            writer.close()
