"""One stream of a connection: bytes both ways, one unacknowledged block at a time in each direction."""

import asyncio
from collections.abc import Callable

from mplab.device.adbd.message import CLSE, OKAY, WRTE

Send = Callable[[int, int, int, bytes], None]
"""Sends a message: command, both arguments, payload."""


class StreamClosedError(ConnectionError):
    """The other side has closed this stream."""


class Stream:
    """A stream, from our side.

    A block that came in is acknowledged when it has been taken out by `read`: a reader that is slow slows the sender.

    Args:
        local: our number of it.
        send: sends a message.
        max_payload: largest block that the other side takes.
    """

    def __init__(self, local: int, send: Send, max_payload: int) -> None:
        self.local = local
        self.remote = 0
        self.accepted = True
        """False for one of the other side's that has not been accepted."""
        self._send = send
        self._max_payload = max_payload
        self._blocks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._acknowledged = asyncio.Event()
        self._closed = asyncio.Event()
        self._rest = b""

    # --- for the connection

    def opened(self, remote: int) -> None:
        """The other side's number is known."""
        self.remote = remote
        self._acknowledged.set()

    def received(self, block: bytes) -> None:
        """A block has come in."""
        self._blocks.put_nowait(block)

    def acknowledged(self) -> None:
        """The other side has taken our block."""
        self._acknowledged.set()

    def ended(self) -> None:
        """The other side has closed it, or the connection is gone."""
        if not self._closed.is_set():
            self._closed.set()
            self._acknowledged.set()
            self._blocks.put_nowait(None)

    # --- for services

    @property
    def is_closed(self) -> bool:
        """Nothing can be sent any more."""
        return self._closed.is_set()

    async def wait_closed(self) -> None:
        """Until the other side has closed it."""
        await self._closed.wait()

    async def wait_open(self, timeout_s: float) -> bool:
        """Whether the other side accepts a stream that we have opened."""
        await asyncio.wait_for(self._acknowledged.wait(), timeout_s)
        return not self.is_closed

    async def read(self) -> bytes:
        """The next bytes; b"" when there will be no more."""
        if self._rest:
            block, self._rest = self._rest, b""
            return block
        while True:
            found = await self._blocks.get()
            if found is None:
                self._blocks.put_nowait(None)
                return b""
            if not self.is_closed:
                self._send(OKAY, self.local, self.remote, b"")
            if found:
                return found

    async def read_exactly(self, size: int) -> bytes:
        """`size` bytes. Raises StreamClosedError when the stream ends before."""
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
        """Send bytes, and wait until the other side has taken them. Raises StreamClosedError."""
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
        """Close it, when the other side has not."""
        if not self.is_closed:
            # 0 says that an OPEN has failed (protocol.txt); the host would look for an open stream otherwise.
            self._send(CLSE, self.local if self.accepted else 0, self.remote, b"")
            self.ended()
