"""Handle one stream of a connection: bytes in both directions, one unacknowledged block at a time in each."""

import asyncio
from collections.abc import Callable

from mplab.device.adbd.message import CLSE, OKAY, WRTE

Send = Callable[[int, int, int, bytes], None]
"""Function that sends a message: command, both arguments, payload."""


class StreamClosedError(ConnectionError):
    """The peer has closed this stream."""


class Stream:
    """The local end of a stream.

    A received block is acknowledged when `read` takes it: a slow reader slows the sender down.

    Args:
        local: local number of the stream.
        send: sends a message.
        max_payload: largest block that the peer accepts, bytes.
    """

    def __init__(self, local: int, send: Send, max_payload: int) -> None:
        self.local = local
        self.remote = 0
        self.accepted = True
        """False for a stream opened by the peer and not yet accepted."""
        self._send = send
        self._max_payload = max_payload
        self._blocks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._acknowledged = asyncio.Event()
        self._closed = asyncio.Event()
        self._rest = b""

    # --- for the connection

    def opened(self, remote: int) -> None:
        """Set the peer's number of the stream, which opens it."""
        self.remote = remote
        self._acknowledged.set()

    def received(self, block: bytes) -> None:
        """Store a received block."""
        self._blocks.put_nowait(block)

    def acknowledged(self) -> None:
        """Record that the peer has acknowledged the last block."""
        self._acknowledged.set()

    def ended(self) -> None:
        """End the stream: the peer has closed it, or the connection has ended."""
        if not self._closed.is_set():
            self._closed.set()
            self._acknowledged.set()
            self._blocks.put_nowait(None)

    # --- for services

    @property
    def is_closed(self) -> bool:
        """Return whether the stream is closed for sending."""
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        """Wait until the peer has closed the stream."""
        await self._closed.wait()

    async def wait_open(self, timeout_s: float) -> bool:
        """Wait for the peer to open the stream. Return whether it was accepted. Raises TimeoutError."""
        await asyncio.wait_for(self._acknowledged.wait(), timeout_s)
        return not self.is_closed

    async def read(self) -> bytes:
        """Return the next bytes; b"" at the end of the stream."""
        if self._rest:
            block, self._rest = self._rest, b""
            return block
        while True:
            data = await self._blocks.get()
            if data is None:
                self._blocks.put_nowait(None)
                return b""
            if not self.is_closed:
                self._send(OKAY, self.local, self.remote, b"")
            if data:
                return data

    async def read_exactly(self, size: int) -> bytes:
        """Return `size` bytes. Raises StreamClosedError if the stream ends earlier."""
        parts, missing = [], size
        while missing > 0:
            block = await self.read()
            if not block:
                raise StreamClosedError("the stream ended in the middle of a record")
            parts.append(block[:missing])
            self._rest = block[missing:]
            missing -= len(parts[-1])
        return b"".join(parts)

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait until the peer has acknowledged them. Raises StreamClosedError."""
        view = memoryview(data)
        for start in range(0, len(view), self._max_payload):
            if self.is_closed:
                raise StreamClosedError("closed by the other side")
            self._acknowledged.clear()
            self._send(WRTE, self.local, self.remote, bytes(view[start : start + self._max_payload]))
            await self._acknowledged.wait()
        if self.is_closed:
            raise StreamClosedError("closed by the other side")

    def close(self) -> None:
        """Close the stream if it is open."""
        if not self.is_closed:
            # 0 means that an OPEN failed (protocol.txt); otherwise the host would look for an open stream.
            self._send(CLSE, self.local if self.accepted else 0, self.remote, b"")
            self.ended()
