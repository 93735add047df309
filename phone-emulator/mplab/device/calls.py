"""Answer the device's own commands in this process: each call uses the standard streams of the command's caller.

On the device, each of these commands is a link to a small program, the applet (``phone-emulator/applet``). The applet
sends one packet with its arguments and its three standard streams (SCM_RIGHTS), and waits for the exit code.
"""

import asyncio
import contextlib
import json
import logging
import os
import select
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

_LOG = logging.getLogger(__name__)
_LARGEST_REQUEST = 256 * 1024
_STREAMS = 3
_WRITERS = 64
_CAP_SYS_ADMIN = 1 << 21
_EXIT_KILLED = 128 + signal.SIGKILL


class CommandError(Exception):
    """A command failed. `text` is written to its standard error, and `code` is its exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class CommandCall:
    """A call of a command on the device.

    Attributes:
        argv: name and arguments of the command.
        cwd: working directory of the caller, a path on the device.
        env: environment of the caller.
        uid: user id of the caller; root is 0.
        root: True: the caller is root and has the capability CAP_SYS_ADMIN.
        streams: file descriptors of standard input, output and error.
        writers: threads that read and write the streams, which can block.
        handles_signals: set by the command's handler. True: a signal is returned by `wait_signal`. False: a signal ends
            the command.
    """

    def __init__(
        self,
        argv: Sequence[str],
        streams: tuple[int, int, int],
        writers: ThreadPoolExecutor,
        *,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        uid: int = 2000,
        root: bool = False,
    ) -> None:
        self.argv = list(argv)
        self.cwd = cwd
        self.env = dict(env or {})
        self.uid = uid
        self.root = root
        self.streams = streams
        self.writers = writers
        self.handles_signals = False
        self._signals: asyncio.Queue[int] = asyncio.Queue()

    async def out(self, data: str | bytes) -> None:
        """Write to the command's standard output. Raises BrokenPipeError if the reader has closed it."""
        await self._write(self.streams[1], data)

    async def err(self, data: str | bytes) -> None:
        """Write to the command's standard error. Raises BrokenPipeError if the reader has closed it."""
        await self._write(self.streams[2], data)

    async def read(self) -> bytes:
        """Return the next bytes of the command's standard input; b"" at the end."""
        return await asyncio.get_running_loop().run_in_executor(self.writers, os.read, self.streams[0], 65536)

    async def read_all(self, limit: int | None = None) -> bytes:
        """Return the standard input up to its end; with `limit`, only up to the block that reaches `limit` bytes."""
        parts, size = [], 0
        while (limit is None or size < limit) and (block := await self.read()):
            parts.append(block)
            size += len(block)
        return b"".join(parts)

    def signalled(self, number: int) -> None:
        """Deliver the signal `number` to the command's handler, for `wait_signal`."""
        self._signals.put_nowait(number)

    async def wait_signal(self) -> int:
        """Wait for the next signal to the command, and return its number."""
        return await self._signals.get()

    async def _write(self, descriptor: int, data: str | bytes) -> None:
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        if raw:
            await asyncio.get_running_loop().run_in_executor(self.writers, _write_all, descriptor, raw)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


Handler = Callable[[CommandCall], Awaitable[int]]
"""Function that answers a call, and returns the exit code of the command."""


class CallServer:
    """A server at a unix socket (SOCK_SEQPACKET). It receives calls of commands, and runs the commands' handlers.

    Args:
        path: path of the socket.
        handlers: name of a command → its handler.
    """

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self._path = path
        self._handlers = handlers
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="streams")

    def start(self) -> None:
        """Start to listen for calls."""
        self._path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        self._socket.bind(str(self._path))
        self._path.chmod(0o666)
        self._socket.listen(128)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    async def stop(self) -> None:
        """Stop listening, and cancel the calls that are still running."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._writers.shutdown(wait=False, cancel_futures=True)

    def _accept(self) -> None:
        assert self._socket is not None  # noqa: S101 - its own reader calls
        with contextlib.suppress(BlockingIOError):
            conn, _address = self._socket.accept()
            task = asyncio.create_task(self._serve(conn))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, conn: socket.socket) -> None:
        conn.setblocking(False)
        streams: list[int] = []
        try:
            await _readable(conn)
            packet, streams, _flags, _address = socket.recv_fds(conn, _LARGEST_REQUEST, _STREAMS)
            if not packet or len(streams) != _STREAMS:
                return
            call = _call_from(packet, streams, conn, self._writers)
            code = await self._answer(call, conn)
            with contextlib.suppress(OSError):
                conn.send(str(code).encode())
        except (OSError, ValueError) as error:
            _LOG.debug("a call was lost: %s", error)
        finally:
            conn.close()
            for descriptor in streams:
                os.close(descriptor)

    async def _answer(self, call: CommandCall, conn: socket.socket) -> int:
        """Run the handler of a call. Cancel it if the caller ends, or no one reads the output. Return the exit code."""
        handler = self._handlers.get(call.argv[0])
        if handler is None:
            await call.err(f"{call.argv[0]}: not found\n")
            return 127
        work = asyncio.ensure_future(_run(handler, call))
        listen = asyncio.ensure_future(_listen(call, conn))
        reader_gone = asyncio.ensure_future(_no_reader(call.streams[1]))
        try:
            await asyncio.wait({work, listen, reader_gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
            return await work
        except asyncio.CancelledError:
            return listen.result() if listen.done() and not listen.cancelled() else _EXIT_KILLED
        finally:
            for task in (work, listen, reader_gone):
                task.cancel()


async def _run(handler: Handler, call: CommandCall) -> int:
    try:
        return await handler(call)
    except CommandError as error:
        await call.err(error.text + "\n" if error.text else "")
        return error.code
    except OSError as error:
        _LOG.debug("%s: %s", call.argv, error)
        return 1
    except Exception:
        _LOG.exception("command %s failed", call.argv)
        with contextlib.suppress(OSError):
            await call.err(f"{call.argv[0]}: internal error of the emulated device\n")
        return 255


async def _listen(call: CommandCall, conn: socket.socket) -> int:
    """Wait until the caller has ended, or has sent a signal that ends the command. Return the command's exit code.

    If the command's handler has set `handles_signals`, signals are delivered to the handler and do not end the command.
    """
    while True:
        await _readable(conn)
        try:
            packet = conn.recv(16)
        except OSError:
            packet = b""
        if not packet:
            return _EXIT_KILLED
        number = int(packet)
        if not call.handles_signals:
            return 128 + number
        call.signalled(number)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, partial(_settle, ready))
    try:
        await ready
    finally:
        loop.remove_reader(sock)


async def _no_reader(descriptor: int) -> None:
    """Wait until no process reads from the pipe `descriptor`. For a file or a terminal, wait forever."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()
    poll = select.epoll()
    try:
        try:
            poll.register(descriptor, 0)  # errors are always reported
        except PermissionError:  # a regular file
            await gone
        loop.add_reader(poll.fileno(), partial(_settle, gone))
        try:
            await gone
        finally:
            loop.remove_reader(poll.fileno())
    finally:
        poll.close()


def _call_from(packet: bytes, streams: Sequence[int], conn: socket.socket, writers: ThreadPoolExecutor) -> CommandCall:
    request = json.loads(packet)
    credentials = conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid = (int.from_bytes(credentials[at : at + 4], "little", signed=True) for at in (0, 4))
    descriptors = (streams[0], streams[1], streams[2])
    root = uid == 0 and _has_rights(pid)
    env = {str(key): str(value) for key, value in request["env"].items()}
    argv = [str(word) for word in request["argv"]]
    return CommandCall(argv, descriptors, writers, cwd=request["cwd"], env=env, uid=uid, root=root)


def _has_rights(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    line = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    return bool(int(line.split()[1], 16) & _CAP_SYS_ADMIN)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
