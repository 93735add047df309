"""An adb server of one's own: nobody else's is asked, started or stopped."""

import contextlib
import os
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import adbutils
from adbutils import AdbConnection

from mplab.base.errors import DeviceError, last_words
from mplab.base.lock import private_directory
from mplab.base.ports import free_port
from mplab.base.programs import ADB
from mplab.base.state import state_directory

_START_TIMEOUT_S = 15.0
_STOP_TIMEOUT_S = 5.0
_SOCKET_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 3.0
_ATTEMPTS = 3
_POLL_S = 0.02

_WITH_ITS_STARTER = '"$@" </dev/null & adb=$!; cat >/dev/null; kill $adb 2>/dev/null; wait $adb'
"""Its standard input ends with what has started it, however that dies; then the server ends."""


class _Connection(AdbConnection):  # type: ignore[misc] # adbutils has no types
    """A connection that starts no server: adbutils would start one at 5037, where the user's is."""

    def __init__(self, port: int) -> None:
        self._port = port
        super().__init__("127.0.0.1", port)

    def _safe_connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), _CONNECT_TIMEOUT_S)


class OwnClient(adbutils.AdbClient):  # type: ignore[misc]
    """adbutils' client of one server that runs, and of no other."""

    def make_connection(self, timeout: float | None = None) -> AdbConnection:
        """A connection to the server; `timeout` in seconds for each answer."""
        connection = _Connection(self.port)
        connection.conn.settimeout(timeout or _SOCKET_TIMEOUT_S)
        return connection

    def open(self, *services: str, timeout_s: float = _SOCKET_TIMEOUT_S) -> AdbConnection:
        """A connection on which each of `services` was asked for and granted: ``host:transport:X``, ``shell:…``.

        Raises:
            adbutils.AdbError, OSError: one of them was not.
        """
        connection = self.make_connection(timeout_s)
        try:
            for service in services:
                connection.conn.sendall(f"{len(service.encode()):04x}{service}".encode())
                connection.check_okay()
        except BaseException:
            connection.conn.close()
            raise
        return connection


class AdbServer:
    """``adb nodaemon server`` at a free port of the loopback, for several phones; a context manager.

    A phone on a cable belongs to one server at a time: the user's own must not hold it.

    Args:
        home: its home folder: its key is in ``.android`` there, made when it is missing. Kept, phones know it again.
        keys: further private keys that it shows to phones: those that they trust already.
        log: host file for its output; by default in `home`.
    """

    def __init__(self, home: Path, *, keys: tuple[Path, ...] = (), log: Path | None = None) -> None:
        self._home = home
        self._keys = keys
        self._log = log or home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        """Where it listens, once it runs."""

    @property
    def home(self) -> Path:
        """Its home folder."""
        return self._home

    @property
    def keys(self) -> tuple[Path, ...]:
        """Further keys."""
        return self._keys

    @property
    def client(self) -> OwnClient:
        """adbutils' client for it."""
        return OwnClient(host="127.0.0.1", port=self.port)

    def __enter__(self) -> Self:
        """Start it, and wait until it listens.

        Raises:
            LabNotReadyError: there is no adb, or no home folder.
            DeviceError: it does not listen in time.
        """
        ADB.path()
        private_directory(self._home)
        for attempt in range(_ATTEMPTS):
            try:
                self._start()
            except DeviceError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return self
        raise AssertionError

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.stop()

    def revive(self) -> list[str]:
        """Start it again, at another port, when it does not answer; one sentence. Raises DeviceError."""
        if self._process is None or self._answers():
            return []
        self.stop()
        self._start()
        return ["adb server had ended and was started again"]

    def stop(self) -> None:
        """End it; nothing when it does not run."""
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None  # noqa: S101 - PIPE was asked for
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()

    def _start(self) -> None:
        self.port = free_port()
        environment = {**os.environ, "HOME": str(self._home), "ADB_MDNS_AUTO_CONNECT": "0"}
        for name in ("ANDROID_ADB_SERVER_PORT", "ANDROID_ADB_SERVER_ADDRESS", "ADB_SERVER_SOCKET", "ANDROID_SERIAL"):
            environment.pop(name, None)
        environment["ADB_VENDOR_KEYS"] = os.pathsep.join(map(str, self._keys))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", _WITH_ITS_STARTER, "adb", str(ADB.path()), "-P", str(self.port), "nodaemon", "server"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            if time.monotonic() > deadline:
                self.stop()
                words = last_words(self._log)
                raise DeviceError("adb server", f"does not answer within {_START_TIMEOUT_S:g} s", stderr=words)
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        with contextlib.suppress(adbutils.AdbError, OSError, ValueError):
            return bool(self.client.server_version())
        return False


def default_home() -> Path:
    """``$XDG_STATE_HOME/mplab/adb``, else ``~/.local/state/mplab/adb``."""
    return state_directory() / "adb"


def user_keys() -> tuple[Path, ...]:
    """The key of the user's own adb, which phones may know already."""
    found = Path.home() / ".android" / "adbkey"
    return (found,) if found.is_file() else ()
