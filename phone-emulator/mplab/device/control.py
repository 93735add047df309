"""Control a running device over an abstract unix socket. Requests and answers are JSON objects, one on each line."""

import asyncio
import json
import os
import re
import secrets
import socket
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mplab.base.errors import DeviceError, LabNotReadyError, MplabError

_PREFIX = "mplab-device/"
_PROCESS = secrets.token_hex(8)
"""Name of this process. Its id does not suffice: processes of other PID namespaces can have the same id."""
_LISTED = re.compile(rf"@({re.escape(_PREFIX)}[0-9a-f]+/[A-Za-z0-9._-]+)")
_TIMEOUT_S = 60.0
_CREDENTIALS = struct.Struct("3i")

ControlMessage = dict[str, Any]
"""Request or answer on a device's control socket: a JSON object, whose keys depend on the operation."""
Operation = Callable[[ControlMessage], Awaitable[ControlMessage]]
"""Function that carries out a request, and returns the answer without the key ``ok``."""


def control_name(serial: str) -> str:
    """Return the name of the control socket of this process's device, without the leading zero byte."""
    return f"{_PREFIX}{_PROCESS}/{serial}"


class ControlServer:
    """A server that answers control requests of root and of this process's user. It disconnects other users."""

    def __init__(self, name: str, operation: Operation) -> None:
        self._name = name
        self._operation = operation
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start to listen for requests."""
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(b"\0" + self._name.encode())
        self._server = await asyncio.start_unix_server(self._connected, sock=sock)

    async def stop(self) -> None:
        """Stop listening for requests."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _pid, uid, _gid = _CREDENTIALS.unpack(credentials)
        try:
            while uid in {0, os.geteuid()} and (line := await reader.readline()):
                writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> ControlMessage:
        try:
            return {"ok": True, **await self._operation(json.loads(line))}
        except (MplabError, OSError, ValueError, TypeError, KeyError) as error:
            return {"ok": False, "error": str(error) or type(error).__name__}


def ask(name: str, request: ControlMessage, *, timeout_s: float = _TIMEOUT_S) -> ControlMessage:
    """Send a request to a device's control socket `name`. Return the answer without the key ``ok``.

    Raises:
        DeviceError: the device does not answer, or refuses the request.
    """
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(timeout_s)
        try:
            sock.connect(b"\0" + name.encode())
            sock.sendall(json.dumps(request).encode() + b"\n")
            line = sock.makefile("rb").readline()
        except OSError as error:
            raise DeviceError(name.rpartition("/")[2], f"the emulated device does not answer: {error}") from None
    answer: ControlMessage = json.loads(line or b'{"ok": false, "error": "it has ended"}')
    if not answer.pop("ok"):
        raise DeviceError(name.rpartition("/")[2], answer["error"])
    return answer


def running_devices() -> dict[str, str]:
    """Return serial number → name of the control socket, for each device that runs in this network namespace."""
    devices = {}
    for line in Path("/proc/net/unix").read_text().splitlines():
        if match := _LISTED.search(line):
            devices[match.group(1).rpartition("/")[2]] = match.group(1)
    return devices


def find_device(serial: str = "") -> str:
    """Return the name of a device's control socket.

    Args:
        serial: serial number of the device; "": the only device that runs.

    Raises:
        LabNotReadyError: no such device runs; or `serial` is "", and none or several devices run.
    """
    devices = running_devices()
    if serial in devices:
        return devices[serial]
    names = ", ".join(sorted(devices)) or "none"
    if serial:
        raise LabNotReadyError(f"no emulated device {serial!r} is running; there are: {names}")
    if not devices:
        raise LabNotReadyError("no emulated device is running: 'mplab lab device' starts one")
    if len(devices) > 1:
        raise LabNotReadyError(f"several emulated devices are running: choose one with --serial ({names})")
    return next(iter(devices.values()))
