"""Run a private adb server; the user's own server is never used, started or stopped."""

import contextlib
import os
import socket
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import adbutils
from adbutils import AdbConnection

from mplab.base.errors import DeviceError, last_words
from mplab.base.files import state_directory
from mplab.base.lock import private_directory
from mplab.base.polling import wait_until
from mplab.base.ports import free_port
from mplab.base.programs import ADB

_START_TIMEOUT_S = 15.0
_STOP_TIMEOUT_S = 5.0
_SOCKET_TIMEOUT_S = 60.0
_CONNECT_TIMEOUT_S = 3.0
_ATTEMPTS = 3
_POLL_S = 0.02

_WITH_ITS_STARTER = '"$@" </dev/null & adb=$!; cat >/dev/null; kill $adb 2>/dev/null; wait $adb'
"""Shell script that kills the server when standard input ends, that is, when the process that started it ends."""


class _Connection(AdbConnection):  # type: ignore[misc] # adbutils has no types
    """Connection to a running adb server. It never starts a server.

    The base class in adbutils would start one at port 5037, the port of the user's server.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        super().__init__("127.0.0.1", port)

    def _safe_connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._port), _CONNECT_TIMEOUT_S)


class OwnClient(adbutils.AdbClient):  # type: ignore[misc]
    """adbutils client for one running adb server, at any port."""

    def make_connection(self, timeout: float | None = None) -> AdbConnection:
        """Return a connection to the server; `timeout` is the limit for each answer, s."""
        connection = _Connection(self.port)
        connection.conn.settimeout(timeout or _SOCKET_TIMEOUT_S)
        return connection

    def open(self, *services: str, timeout_s: float = _SOCKET_TIMEOUT_S) -> AdbConnection:
        """Return a connection to the server after it has granted all `services`: ``host:transport:X``, ``shell:…``.

        Raises:
            adbutils.AdbError, OSError: a service was refused, or the server does not answer.
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
    """``adb nodaemon server`` on a free port of the loopback, for several phones; a context manager.

    A phone on USB can be used by only one server at a time, so the user's own server must not use it.

    Args:
        home: home folder with the server's key in ``.android``; both are made when missing. With the same folder, a
            phone that has authorized the key is not asked again.
        keys: additional private keys to offer to phones, which may already trust them.
        log: host file for the server's output; by default in `home`.
    """

    def __init__(self, home: Path, *, keys: tuple[Path, ...] = (), log: Path | None = None) -> None:
        self._home = home
        self._keys = keys
        self._log = log or home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        """TCP port of the running server on 127.0.0.1."""

    @property
    def home(self) -> Path:
        """Home folder of the server, with its key in ``.android``."""
        return self._home

    @property
    def keys(self) -> tuple[Path, ...]:
        """Additional private keys that the server offers to phones."""
        return self._keys

    @property
    def client(self) -> OwnClient:
        """adbutils client for this server."""
        return OwnClient(host="127.0.0.1", port=self.port)

    def __enter__(self) -> Self:
        """Start the server and wait until it listens.

        Raises:
            LabNotReadyError: adb is not installed, or the home folder cannot be made.
            DeviceError: the server does not listen in time.
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
        """Stop the server."""
        self.stop()

    def revive(self) -> list[str]:
        """Start the server again, on another port, if it does not answer.

        Returns:
            One sentence about the restart; [] if the server answered or was never started.

        Raises:
            DeviceError: the server does not listen in time.
        """
        if self._process is None or self._answers():
            return []
        self.stop()
        self._start()
        return ["adb server had ended and was started again"]

    def stop(self) -> None:
        """Stop the server; do nothing when it does not run."""
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
        if not wait_until(self._answers, _START_TIMEOUT_S, interval_s=_POLL_S):
            self.stop()
            words = last_words(self._log)
            raise DeviceError("adb server", f"does not answer within {_START_TIMEOUT_S:g} s", stderr=words)

    def _answers(self) -> bool:
        with contextlib.suppress(adbutils.AdbError, OSError, ValueError):
            return bool(self.client.server_version())
        return False


def default_home() -> Path:
    """Return ``$XDG_STATE_HOME/mplab/adb`` or, without that variable, ``~/.local/state/mplab/adb``."""
    return state_directory() / "adb"


def user_keys() -> tuple[Path, ...]:
    """Return the private key of the user's own adb, which phones may already trust; () if there is none."""
    key = Path.home() / ".android" / "adbkey"
    return (key,) if key.is_file() else ()
