"""Handle the connection of one host to adbd: its authentication and its streams."""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine

from mplab.device.adbd import auth
from mplab.device.adbd.backend import Backend
from mplab.device.adbd.message import (
    AUTH,
    CLSE,
    CNXN,
    MAX_PAYLOAD,
    MAX_PAYLOAD_V1,
    OKAY,
    OPEN,
    VERSION,
    VERSION_WITH_CHECKSUM,
    WRTE,
    AdbMessage,
    ProtocolError,
    read_message,
)
from mplab.device.adbd.stream import Stream

_LOG = logging.getLogger(__name__)
_OPEN_TIMEOUT_S = 10.0

Serve = Callable[["Connection", Stream, str], Awaitable[None]]
"""Function that serves a stream which the host has opened, with its address. It must accept the stream first."""


class Connection:
    """adbd's end of the connection of one host."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, backend: Backend, serve: Serve
    ) -> None:
        self._reader, self._writer = reader, writer
        self._backend = backend
        self._serve = serve
        self._streams: dict[int, Stream] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._version = VERSION_WITH_CHECKSUM
        self._max_payload = MAX_PAYLOAD_V1
        self._online = False
        self._token = b""
        self.on_close: list[Callable[[], None]] = []
        """Functions that are called when the connection ends, to release resources of its streams."""

    async def run(self) -> None:
        """Handle the host's messages until it disconnects."""
        try:
            while True:
                message = await read_message(self._reader, checksum=self._version < VERSION)
                await self._backend.delay()
                self._handle(message)
                await self._drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except ProtocolError as error:
            _LOG.warning("connection closed: %s", error)
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection and all of its streams."""
        self._writer.close()
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            stream.ended()
        for action in self.on_close:
            action()
        self.on_close.clear()

    async def finish(self) -> None:
        """Wait up to 2 s until the functions that serve the streams end, then cancel the rest. Call after `close`."""
        if self._tasks:
            _done, late = await asyncio.wait(self._tasks, timeout=2)
            for task in late:
                task.cancel()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def open(self, address: str) -> Stream | None:
        """Open a stream to `address` on the host. Return None if the host refuses it or does not answer within 10 s."""
        stream = self._new_stream()
        self._send(OPEN, stream.local, 0, address.encode() + b"\0")
        try:
            if await stream.wait_open(_OPEN_TIMEOUT_S):
                return stream
        except TimeoutError:
            self.forget(stream)
        return None

    def accept(self, stream: Stream) -> None:
        """Accept a stream that the host has opened: send OKAY."""
        stream.accepted = True
        self._send(OKAY, stream.local, stream.remote, b"")

    def forget(self, stream: Stream) -> None:
        """Close a stream, and remove it from the connection."""
        stream.close()
        self._streams.pop(stream.local, None)

    def _new_stream(self) -> Stream:
        stream = Stream(next(self._numbers), self._send, self._max_payload)
        self._streams[stream.local] = stream
        return stream

    def _send(self, command: int, arg0: int, arg1: int, payload: bytes) -> None:
        if not self._writer.is_closing():
            message = AdbMessage(command, arg0, arg1, payload)
            self._writer.write(message.encode(checksum=self._version < VERSION))

    async def _drain(self) -> None:
        """Wait until few sent bytes are left in the send buffer of the connection."""
        await self._writer.drain()

    def _handle(self, message: AdbMessage) -> None:
        if message.command == CNXN:
            self._version = min(message.arg0, VERSION)
            self._max_payload = min(message.arg1, MAX_PAYLOAD)
            self._greet()
        elif message.command == AUTH:
            self._authenticate(message)
        elif not self._online:
            return  # ignore messages of a host that is not trusted
        elif message.command == OPEN:
            self._opened(message)
        elif stream := self._streams.get(message.arg1):
            self._to_stream(stream, message)
        elif message.command == WRTE:
            self._send(CLSE, 0, message.arg0, b"")

    def _greet(self) -> None:
        if self._backend.trusted_keys is None:
            self._welcome()
        else:
            self._challenge()

    def _welcome(self) -> None:
        self._online = True
        self._send(CNXN, self._version, MAX_PAYLOAD, self._backend.banner)

    def _challenge(self) -> None:
        self._token = auth.new_token()
        self._send(AUTH, auth.TOKEN, 0, self._token)

    def _authenticate(self, message: AdbMessage) -> None:
        keys = self._backend.trusted_keys
        if message.arg0 == auth.SIGNATURE:
            if keys is None or (self._token and auth.signed_by(self._token, message.payload, keys)):
                self._welcome()
            else:
                self._challenge()
        elif message.arg0 == auth.PUBLIC_KEY:
            key = message.payload.rstrip(b"\0").decode("ascii", "replace").strip()
            if self._backend.offer_key(key):
                self._welcome()

    def _opened(self, message: AdbMessage) -> None:
        stream = self._new_stream()
        stream.remote = message.arg0
        stream.accepted = False
        address = message.payload.rstrip(b"\0").decode("utf-8", "surrogateescape")
        self._start(self._serve_stream(stream, address))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_stream(self, stream: Stream, address: str) -> None:
        try:
            await self._serve(self, stream, address)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except Exception:
            _LOG.exception("service %r failed", address)
        finally:
            self.forget(stream)

    def _to_stream(self, stream: Stream, message: AdbMessage) -> None:
        if message.command == WRTE:
            stream.received(message.payload)
        elif message.command == OKAY:
            if stream.remote:
                stream.acknowledged()
            else:
                stream.opened(message.arg0)
        elif message.command == CLSE:
            stream.ended()
            self._streams.pop(stream.local, None)
            if message.arg0:  # 0: the host refused a stream of ours
                self._send(CLSE, 0, message.arg0, b"")
