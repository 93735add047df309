"""Run Debian's adbd in the device, behind a filter that handles the connections of hosts.

Debian's adbd serves shell, exec, sync, forward and reverse. The filter adds functions that it lacks: authentication,
the phone's banner, ``root:``, ``reboot:`` and the faults. ``reboot:`` never reaches Debian's adbd: it could reboot this
machine.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.places import cache_folder
from mplab.base.programs import Program
from mplab.device.adbd.backend import Backend, Channel
from mplab.device.adbd.connection import Connection, Serve
from mplab.device.adbd.message import (
    CLSE,
    CNXN,
    OKAY,
    OPEN,
    VERSION,
    WRTE,
    AdbMessage,
    ProtocolError,
    read_message,
)

_LOG = logging.getLogger(__name__)

ADBD = Program("debian-adbd", ("adbd",), (), "adbd", "Debian's adbd for the emulated device")
UNPACKED = cache_folder("adbd")
"""Folder to which ``tools/debian-adbd`` unpacks Debian's adbd with its libraries and its loader."""
MOUNTED = "/apex/com.android.adbd"
"""Folder on the device at which this machine's folder with Debian's adbd is mounted."""

_PORT = 5600
"""TCP port of Debian's adbd inside the device; not 5555…5585, where adb servers search for emulators."""
_START_TIMEOUT_S = 10.0
_FIRST_OWN = 1 << 30
"""First number of the streams that the filter itself serves; Debian's adbd numbers its streams from 1."""
_PASSED = frozenset(
    {b"shell", b"exec", b"sync", b"tcp", b"localabstract", b"localfilesystem", b"localreserved", b"local", b"reverse"}
)
"""Services of Debian's adbd that hosts may open."""
_NOT_SERVED = frozenset({b"abb", b"abb_exec", b"remount_shell", b"track_app", b"delayed_ack"})
"""Features that Debian's adbd announces but does not have, and ``delayed_ack``, which the filter does not have."""


@dataclass(frozen=True)
class DebianAdbd:
    """Debian's adbd, installed or unpacked on this machine.

    Attributes:
        folder: folder on this machine that has the program; the device mounts it at `MOUNTED`.
        command: command line that runs the program in the device.
    """

    folder: Path
    command: str


def find_adbd(environment: Mapping[str, str] = os.environ) -> DebianAdbd | None:
    """Return Debian's adbd if the device must use it; None: the device uses this package's own adbd.

    The environment variable ``MPLAB_ADBD`` (``own`` or ``debian``) decides. Without it, Debian's adbd is used if it is
    installed.

    Raises:
        InputError: the variable has another value.
        LabNotReadyError: the variable is ``debian``, and Debian's adbd is neither installed nor unpacked.
    """
    choice = environment.get("MPLAB_ADBD", "")
    if choice not in {"", "own", "debian"}:
        raise InputError(f"MPLAB_ADBD={choice}: must be 'own' or 'debian'")
    if choice == "own":
        return None
    installed = ADBD.find()
    if installed:
        program = installed.resolve()
        return DebianAdbd(program.parent, f"{MOUNTED}/{program.name}")
    if choice == "":
        return None
    if not (UNPACKED / "adbd").exists():
        raise LabNotReadyError("MPLAB_ADBD=debian: adbd is neither installed nor unpacked; run tools/debian-adbd")
    return DebianAdbd(UNPACKED, f"{MOUNTED}/ld.so --library-path {MOUNTED}/lib {MOUNTED}/adbd")


class Daemon:
    """The process of Debian's adbd in the device; it runs as the user of adb's shell.

    Args:
        backend: the device.
        command: command line that runs Debian's adbd in the device.
    """

    def __init__(self, backend: Backend, command: str) -> None:
        self._backend = backend
        self._command = command
        self._channel: Channel | None = None

    async def start(self) -> None:
        """Start Debian's adbd, and wait until it listens. Raises OSError if it does not within 10 s."""
        command = f"exec {self._command} </dev/null >/dev/null 2>&1"
        self._channel = await self._backend.spawn(command, terminal=False, merged=True, env={"ADBD_PORT": str(_PORT)})
        deadline = asyncio.get_running_loop().time() + _START_TIMEOUT_S
        while True:
            try:
                _reader, writer = await self.dial()
            except ConnectionError:
                ended = self._channel.process.returncode is not None
                if ended or asyncio.get_running_loop().time() > deadline:
                    await self.stop()
                    raise OSError(f"Debian's adbd does not listen: {self._command}. MPLAB_ADBD=own avoids it") from None
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return

    async def stop(self) -> None:
        """End Debian's adbd. Programs that hosts have started in separate sessions keep running."""
        if self._channel is not None:
            process, self._channel = self._channel.process, None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to Debian's adbd. Raises OSError."""
        return await self._backend.dial(f"tcp:{_PORT}")


class FilteredConnection(Connection):
    """The connection of one host. Once the host is trusted, its messages are relayed to Debian's adbd.

    Args:
        reader: messages from the host.
        writer: messages to the host.
        backend: the device.
        serve: serves those streams of the host that must not reach Debian's adbd.
        daemon: Debian's adbd.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        backend: Backend,
        serve: Serve,
        daemon: Daemon,
    ) -> None:
        super().__init__(reader, writer, backend, serve)
        self._numbers = itertools.count(_FIRST_OWN)
        self._daemon = daemon
        self._host_banner = b""
        self._to_adbd: asyncio.StreamWriter | None = None

    def close(self) -> None:
        """Close the connections to the host and to Debian's adbd, and the streams that the filter serves."""
        super().close()
        if self._to_adbd is not None:
            self._to_adbd.close()

    async def _drain(self) -> None:
        await super()._drain()
        if self._to_adbd is not None:
            await self._to_adbd.drain()

    def _handle(self, message: AdbMessage) -> None:
        if message.command == CNXN:
            self._host_banner = message.payload
        if self._to_adbd is not None and self._is_for_adbd(message):
            self._to_adbd.write(message.encode())
        else:
            super()._handle(message)

    def _is_for_adbd(self, message: AdbMessage) -> bool:
        if message.command == OPEN:
            return re.split(rb"[:,]", message.payload, maxsplit=1)[0] in _PASSED
        return message.command in {OKAY, WRTE, CLSE} and message.arg1 < _FIRST_OWN

    def _welcome(self) -> None:
        self._start(self._relay())

    async def _relay(self) -> None:
        """Connect to Debian's adbd, send the phone's banner to the host, and relay the messages of adbd to the host.

        Return when adbd or the host has closed its connection.
        """
        try:
            reader, writer = await self._daemon.dial()
            try:
                writer.write(AdbMessage(CNXN, VERSION, self._max_payload, _served(self._host_banner)).encode())
                answer = await read_message(reader, checksum=False)
                self._online = True
                self._to_adbd = writer
                self._send(CNXN, self._version, answer.arg1, self._banner(answer.payload))
                while True:
                    message = await read_message(reader, checksum=False)
                    await self._backend.delay()
                    self._send(message.command, message.arg0, message.arg1, message.payload)
                    await self._writer.drain()
            finally:
                writer.close()
        except (asyncio.IncompleteReadError, ProtocolError, OSError) as error:
            _LOG.debug("connection to Debian's adbd ended: %s", error)
        finally:
            self._writer.close()

    def _banner(self, announced: bytes) -> bytes:
        """Return the phone's banner with those features that Debian's adbd has announced and really serves."""
        phone = self._backend.banner.rpartition(b"features=")[0]
        return phone + b"features=" + _served(announced).rpartition(b"features=")[2]


def _served(banner: bytes) -> bytes:
    """Return a banner with only those of its features that both Debian's adbd and the filter serve."""
    head, key, rest = banner.partition(b"features=")
    features, end, tail = rest.partition(b";")
    served = b",".join(name for name in features.split(b",") if name not in _NOT_SERVED)
    return head + key + served + end + tail
