"""Forward a Unix socket of this machine to a Docker engine behind SSH, for the Docker client and for Compose.

Docker's own library leaves an SSH process behind for each connection, sets no timeout for SSH, and needs extra packages
for Compose 1.29. Compose 1.29 opens up to 64 connections at once, more than SSH servers accept as logins. In this
module, one `ssh` process logs in, and each connection is a session over its login (ssh_config(5), ControlMaster). The
process of a session ends with the connection.
"""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from mplab.base.errors import LabNotReadyError
from mplab.base.packages import install
from mplab.base.polling import wait_until

SSH = "ssh://"

_CONNECT_S, _TIMEOUT_S = 15, 60.0
_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={_CONNECT_S}"),  # no prompts: an unknown host key is an error
    *("ServerAliveInterval=10", "ServerAliveCountMax=3"),  # a server silent for 30 s counts as lost
)
_DIAL = "docker system dial-stdio"
_END_TIMEOUT_S = 5.0
_POLL_S = 0.01


class Tunnel:
    """Unix socket that forwards connections to the engine until it is closed.

    Args:
        url: ``ssh://user@host``.

    Raises:
        LabNotReadyError: SSH or the remote Docker program failed; the message has its output.
    """

    def __init__(self, url: str) -> None:
        _try(url)
        self._ssh_url = url
        self._folder = TemporaryDirectory(prefix="mplab-engine-")
        self._path = Path(self._folder.name) / "docker.sock"
        self._control = self._path.with_name("ssh")
        self._processes: list[subprocess.Popen[bytes]] = []
        self._master = self._log_in()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """URL of the socket, ``unix://…``."""
        return f"unix://{self._path}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._processes = [process for process in self._processes if process.poll() is None]
            # When ssh cannot be started, the client sees the connection end.
            with connection, suppress(OSError):
                self._processes.append(self._spawn(connection.fileno()))

    def _spawn(self, both: int) -> subprocess.Popen[bytes]:
        argv = _argv(self._ssh_url, f"ControlPath={self._control}", "ControlMaster=no", command=_DIAL)
        # Own session: Ctrl-C must not end ssh, because the cleanup still needs the engine.
        return subprocess.Popen(argv, stdin=both, stdout=both, stderr=subprocess.DEVNULL, start_new_session=True)

    def _log_in(self) -> subprocess.Popen[bytes]:
        """Start the `ssh` master process for all sessions.

        If the server refuses a session over this login, `ssh` logs in again for that session.
        """
        argv = _argv(self._ssh_url, f"ControlPath={self._control}", "ControlMaster=yes", "ControlPersist=no")
        argv.insert(1, "-N")
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        wait_until(lambda: self._control.exists() or process.poll() is not None, _TIMEOUT_S, interval_s=_POLL_S)
        return process

    def close(self) -> None:
        """Close the socket and every connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(_END_TIMEOUT_S)
        self._listener.close()
        processes = [*self._processes, self._master]
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = []
        self._folder.cleanup()


def _argv(url: str, *options: str, command: str = "") -> list[str]:
    chosen = [part for option in (*_OPTIONS, *options) for part in ("-o", option)]
    return ["ssh", "-T", *chosen, "--", url, *([command] if command else [])]


def _try(url: str) -> None:
    """Test SSH by one connection to the engine at `url`: its standard error gives the reason if SSH fails.

    Raises:
        LabNotReadyError: the test connection failed.
    """
    if shutil.which("ssh") is None:
        raise _failure(url, f"no ssh on this machine: {install('openssh-client')}")
    try:
        result = subprocess.run(
            _argv(url, "ControlPath=none", command=_DIAL),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _failure(url, f"no answer within {_TIMEOUT_S:g} s") from error
    if result.returncode != 0:
        lines = [line.strip() for line in result.stderr.decode(errors="replace").splitlines() if line.strip()]
        raise _failure(url, lines[-1] if lines else f"exit code {result.returncode}")


def _failure(url: str, why: str) -> LabNotReadyError:
    why = why.rstrip(".")
    return LabNotReadyError(f"Docker at {url} cannot be reached over SSH: {why}; try: ssh {url} docker info")


@contextmanager
def near(url: str) -> Iterator[str]:
    """Yield a URL of the engine that needs no SSH: `url` itself, or a tunnel. Raises LabNotReadyError if SSH fails."""
    if not url.startswith(SSH):
        yield url
        return
    with closing(Tunnel(url)) as tunnel:
        yield tunnel.url
