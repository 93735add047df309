"""Client of adb's shell protocol, version 2, with three streams and an exit code (``shell_protocol.h`` of adb)."""

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

from mplab.drivers.phone.adb.server import OwnClient

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)

_PACKET = struct.Struct("<BI")
_BLOCK = 32 * 1024
_LONGEST_COMMAND = 30_000
"""Maximum length of a command line, bytes; send longer scripts by standard input."""


class LostError(Exception):
    """The connection to the phone ended before the command ended."""


class LateError(Exception):
    """The command did not end in time."""


@dataclass(frozen=True)
class Output:
    """Exit code and output of a command on the phone, as bytes."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class ShellStream:
    """A command line that runs in the phone's shell.

    Args:
        client: client of the phone's adb server.
        serial: serial of the phone.
        command: command line.
        timeout_s: limit for the start of the command, s.

    Raises:
        adbutils.AdbError, OSError: the command could not be started.
        ValueError: the command line is too long.
    """

    def __init__(self, client: OwnClient, serial: str, command: str, *, timeout_s: float = 30.0) -> None:
        if len(command.encode()) > _LONGEST_COMMAND:
            raise ValueError(f"a command line of {len(command.encode())} bytes")
        service = f"shell,v2,TERM=dumb,raw:{command}"
        self._socket: socket.socket = client.open(f"host:transport:{serial}", service, timeout_s=timeout_s).conn
        self._received = bytearray()
        self._outgoing = bytearray()

    def close(self) -> None:
        """Close the connection; programs on the phone that depend on it end."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def send(self, data: bytes) -> None:
        """Queue `data` as the whole standard input of the command; `read` sends it."""
        for start in range(0, len(data), _BLOCK):
            block = data[start : start + _BLOCK]
            self._outgoing += _PACKET.pack(STDIN, len(block)) + block
        self._outgoing += _PACKET.pack(CLOSE_STDIN, 0)

    def read(self, take: Callable[[int, bytes], None], *, deadline: float | None = None) -> int:
        """Send the queued input and receive output until the command ends; return the command's exit code.

        Args:
            take: called with the stream (`STDOUT`, `STDERR`) and data of each received block.
            deadline: time limit, s of `time.monotonic`; None: no limit.

        Raises:
            LateError: `deadline` has passed.
            LostError: the connection ended.
        """
        self._socket.setblocking(False)
        try:
            while True:
                self._exchange(deadline)
                while (packet := self._packet()) is not None:
                    kind, data = packet
                    if kind == EXIT:
                        return data[0]
                    take(kind, data)
        except (OSError, ValueError) as error:  # ValueError: closed by another thread
            raise LostError(str(error)) from error

    def _exchange(self, deadline: float | None) -> None:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise LateError
        writing = [self._socket] if self._outgoing else []
        readable, writable, _ = select.select([self._socket], writing, [], left)
        if writable:
            with contextlib.suppress(BlockingIOError):
                del self._outgoing[: self._socket.send(self._outgoing[: 2 * _BLOCK])]
        if readable:
            with contextlib.suppress(BlockingIOError):
                block = self._socket.recv(2 * _BLOCK)
                if not block:
                    raise LostError
                self._received += block

    def _packet(self) -> tuple[int, bytes] | None:
        if len(self._received) < _PACKET.size:
            return None
        kind, length = _PACKET.unpack_from(self._received)
        if len(self._received) < _PACKET.size + length:
            return None
        data = bytes(self._received[_PACKET.size : _PACKET.size + length])
        del self._received[: _PACKET.size + length]
        return kind, data


def run(client: OwnClient, serial: str, command: str, *, stdin: bytes = b"", timeout_s: float = 30.0) -> Output:
    """Run a command line in the phone's shell and wait for it.

    Raises:
        LateError: the command took longer than `timeout_s`; the connection is closed.
        LostError: the phone was lost.
        adbutils.AdbError, OSError: the phone is not connected or does not answer.
    """
    deadline = time.monotonic() + timeout_s
    stream = ShellStream(client, serial, command, timeout_s=timeout_s)
    streams = {STDOUT: bytearray(), STDERR: bytearray()}
    try:
        stream.send(stdin)
        code = stream.read(lambda kind, data: streams.setdefault(kind, bytearray()).extend(data), deadline=deadline)
    finally:
        stream.close()
    return Output(code, bytes(streams[STDOUT]), bytes(streams[STDERR]))
