"""Handle one stream of adb's protocol. In each direction, at most one block may be unacknowledged."""

import asyncio
from collections.abc import Callable

from mplab.device.adbd.message import CLSE, OKAY, WRTE

Send = Callable[[int, int, int, bytes], None]
"""Function that sends a message to the peer; its arguments are command, both arguments and payload of the message."""


class StreamClosedError(ConnectionError):
    """The stream was closed by the peer, or with its connection."""


class Stream:
    """The local end of a stream of adb's protocol.

    A received block is acknowledged only when `read` returns it: a slow reader slows the sender down.

    Args:
        local: number of the stream at this end.
        send: function that sends a message to the peer.
        max_payload: size of the largest block that the peer accepts, bytes.
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
        """Record that the peer has accepted the stream: `remote` is the number of the stream at the peer."""
        self.remote = remote
        self._acknowledged.set()

    def received(self, block: bytes) -> None:
        """Store a block that the peer has sent, for `read`."""
        self._blocks.put_nowait(block)

    def acknowledged(self) -> None:
        """Record that the peer has acknowledged the last sent block."""
        self._acknowledged.set()

    def ended(self) -> None:
        """Record that the stream has ended: the peer has closed it, or the connection has ended."""
        if not self._closed.is_set():
            self._closed.set()
            self._acknowledged.set()
            self._blocks.put_nowait(None)

    # --- for services

    @property
    def is_closed(self) -> bool:
        """Return whether the stream has ended, so that nothing can be sent."""
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        """Wait until the stream has ended."""
        await self._closed.wait()

    async def wait_open(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for the peer's answer. Return whether it accepted the stream. Raises TimeoutError."""
        await asyncio.wait_for(self._acknowledged.wait(), timeout_s)
        return not self.is_closed

    async def read(self) -> bytes:
        """Return the next received bytes; b"" at the end of the stream."""
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
        """Return the next `size` received bytes. Raises StreamClosedError if the stream ends earlier."""
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
        """Send `data` in blocks, and wait until the peer has acknowledged all. Raises StreamClosedError."""
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
        """Close the stream, and report it to the peer. Do nothing if the stream has ended."""
        if not self.is_closed:
            # 0 means that an OPEN failed (protocol.txt); otherwise the host would look for an open stream.
            self._send(CLSE, self.local if self.accepted else 0, self.remote, b"")
            self.ended()
