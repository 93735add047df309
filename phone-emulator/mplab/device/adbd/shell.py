"""Serve ``shell:`` and ``exec:``: run a program, and carry its input and output over a stream of adb.

Version 2 (``shell,v2,…``) uses packets: one byte that names the program's stream, four bytes of length, data.
"""

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import struct
import termios
from collections.abc import Awaitable, Callable, Sequence

from mplab.device.adbd.backend import Backend, Channel
from mplab.device.adbd.stream import Stream, StreamClosedError

_STDIN, _STDOUT, _STDERR, _EXIT, _CLOSE_STDIN, _WINDOW = range(6)
_PACKET = struct.Struct("<BI")
_BLOCK = 32 * 1024
_LARGEST = 1024 * 1024
_GRACE_S = 2.0
_Send = Callable[[bytes], Awaitable[None]]
_WINDOW_SIZE = re.compile(rb"(\d+)x(\d+),(\d+)x(\d+)")


async def serve_shell(backend: Backend, stream: Stream, options: Sequence[str], command: str) -> None:
    """Serve ``shell:COMMAND`` or ``shell,v2,TERM=…,pty|raw:COMMAND``; `options` are the words before the colon."""
    env = dict(option.split("=", 1) for option in options if option.startswith("TERM="))
    packets = "v2" in options
    terminal = "pty" in options or (not command and "raw" not in options)
    channel = await backend.spawn(command, terminal=terminal, merged=not packets, env=env)
    if packets:
        await _serve_packets(channel, stream)
    else:
        await _serve_plain(channel, stream)


async def serve_exec(backend: Backend, stream: Stream, command: str) -> None:
    """Serve ``exec:COMMAND``: carry the program's input and output as raw bytes, without a terminal."""
    await _serve_plain(await backend.spawn(command, terminal=False, merged=True), stream)


async def _serve_plain(channel: Channel, stream: Stream) -> None:
    async def send(block: bytes) -> None:
        await stream.write(block)

    async def receive() -> None:
        while block := await stream.read():
            await _feed(channel, block)
        await _close_stdin(channel)

    source, close = await _output_of(channel)
    receiving = asyncio.create_task(receive())
    try:
        await _pump(source, send)
    except StreamClosedError:
        await _hang_up(channel)
    finally:
        close()
        receiving.cancel()
        await _bury(channel, stream)


async def _serve_packets(channel: Channel, stream: Stream) -> None:
    async def receive() -> None:
        try:
            while True:
                kind, length = _PACKET.unpack(await stream.read_exactly(_PACKET.size))
                if length > _LARGEST:
                    break
                await _packet(channel, kind, await stream.read_exactly(length))
        except StreamClosedError:
            pass
        await _hang_up(channel)

    def sender(kind: int) -> "_Sender":
        return _Sender(stream, kind)

    receiving = asyncio.create_task(receive())
    source, close = await _output_of(channel)
    pumps = [_pump(source, sender(_STDOUT))]
    if channel.process.stderr is not None:
        pumps.append(_pump(channel.process.stderr, sender(_STDERR)))
    try:
        await asyncio.gather(*pumps)
        code = await channel.process.wait()
        await stream.write(_PACKET.pack(_EXIT, 1) + bytes([code if code >= 0 else 128 - code]))
    except StreamClosedError:
        await _hang_up(channel)
    finally:
        close()
        receiving.cancel()
        await _bury(channel, stream)


class _Sender:
    def __init__(self, stream: Stream, kind: int) -> None:
        self._stream, self._kind = stream, kind

    async def __call__(self, block: bytes) -> None:
        await self._stream.write(_PACKET.pack(self._kind, len(block)) + block)


async def _packet(channel: Channel, kind: int, data: bytes) -> None:
    if kind == _STDIN:
        await _feed(channel, data)
    elif kind == _CLOSE_STDIN:
        await _close_stdin(channel)
    elif kind == _WINDOW and channel.terminal is not None and (size := _WINDOW_SIZE.match(data)):
        rows, columns, width, height = (min(int(number), 65535) for number in size.groups())
        fcntl.ioctl(channel.terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, width, height))


async def _feed(channel: Channel, block: bytes) -> None:
    """Write input of the host to the program's terminal or standard input."""
    if channel.terminal is not None:
        await asyncio.to_thread(_write_all, channel.terminal, block)
        return
    stdin = channel.process.stdin
    assert stdin is not None  # noqa: S101 - without a terminal it has pipes
    with contextlib.suppress(ConnectionError):  # the program reads no more
        stdin.write(block)
        await stdin.drain()


def _write_all(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    with contextlib.suppress(OSError):
        while view:
            view = view[os.write(descriptor, view) :]


async def _close_stdin(channel: Channel) -> None:
    if channel.terminal is not None:
        await _feed(channel, b"\x04")
    elif channel.process.stdin is not None:
        channel.process.stdin.close()


async def _output_of(channel: Channel) -> tuple[asyncio.StreamReader, "_Close"]:
    """Return a reader of the program's output, and a function that closes the program's terminal if there is one."""
    if channel.terminal is None:
        assert channel.process.stdout is not None  # noqa: S101
        return channel.process.stdout, _Close(None, None)
    reader = asyncio.StreamReader()
    descriptor = os.dup(channel.terminal)
    transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(
        lambda: _TerminalProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader, _Close(transport, channel.terminal)


class _TerminalProtocol(asyncio.StreamReaderProtocol):
    """Reader of a terminal's output that treats the error EIO as the end of the output.

    A terminal reports EIO when its programs have ended. Data that was read earlier stays available.
    """

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)


class _Close:
    def __init__(self, transport: asyncio.ReadTransport | None, terminal: int | None) -> None:
        self._transport, self._terminal = transport, terminal

    def __call__(self) -> None:
        if self._transport is not None:
            self._transport.close()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None


async def _pump(source: asyncio.StreamReader, send: _Send) -> None:
    while block := await source.read(_BLOCK):
        await send(block)


async def _hang_up(channel: Channel) -> None:
    """Send SIGHUP to the program's process group, because the host has disconnected."""
    if channel.process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(channel.process.pid, signal.SIGHUP)


async def _bury(channel: Channel, stream: Stream) -> None:
    """Wait until the program ends. If the host has disconnected, kill the program after 2 s."""
    process = channel.process
    if process.stdin is not None:
        process.stdin.close()
    if not stream.is_closed:
        await process.wait()
        return
    try:
        await asyncio.wait_for(process.wait(), _GRACE_S)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
