"""An engine over SSH as a socket of this machine, for the client and for compose alike.

Docker's own library leaves a process for each connection, knows no timeout there, and for compose 1.29 has to be
installed with further packages.
"""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from orchestrator.errors import LabNotReadyError

SSH = "ssh://"

_CONNECT_S, _TIMEOUT_S = 15, 60.0
_OPTIONS = ("BatchMode=yes", f"ConnectTimeout={_CONNECT_S}", "ServerAliveInterval=10", "ServerAliveCountMax=3")
"""Nobody is asked: a host key that is not known is an error. A server that is silent for half a minute is gone."""
_DIAL = "docker system dial-stdio"
_END_TIMEOUT_S = 5.0


def ssh_argv(url: str) -> list[str]:
    """The command that is a connection to the engine of ``ssh://user@host``."""
    return ["ssh", "-T", *(part for option in _OPTIONS for part in ("-o", option)), "--", url, _DIAL]


def try_ssh(url: str) -> None:
    """Do once what each connection does.

    Raises:
        LabNotReadyError: with what SSH, or Docker's program there, has said.
    """
    try:
        done = subprocess.run(
            ssh_argv(url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise _failure(url, "no ssh on this machine: apt-get install openssh-client") from error
    except subprocess.TimeoutExpired as error:
        raise _failure(url, f"no answer within {_TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise _failure(url, lines[-1] if lines else f"exit code {done.returncode}")


def _failure(url: str, why: str) -> LabNotReadyError:
    return LabNotReadyError(
        f"Docker at {url} cannot be reached over SSH: {why.rstrip('.')}; try: ssh {url} docker info"
    )


class Tunnel:
    """Listens until it is closed; each connection is an `ssh` of its own.

    Args:
        url: ``ssh://user@host``.
    """

    def __init__(self, url: str) -> None:
        self._argv = ssh_argv(url)
        self._folder = TemporaryDirectory(prefix="mplab-engine-")
        self._path = Path(self._folder.name) / "docker.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """``unix://…``"""
        return f"unix://{self._path}"

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._processes = [process for process in self._processes if process.poll() is None]
            # When ssh cannot be started, whoever has connected sees the end.
            with connection, suppress(OSError):
                self._processes.append(
                    subprocess.Popen(
                        self._argv,
                        stdin=connection.fileno(),
                        stdout=connection.fileno(),
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,  # an interrupt is for us; what it undoes needs the engine
                    )
                )

    def close(self) -> None:
        """End it, and every connection. Once is enough."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(_END_TIMEOUT_S)
        self._listener.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes = []
        self._folder.cleanup()


@contextmanager
def near(url: str) -> Iterator[str]:
    """A URL of the same engine that needs no SSH, for a ``with`` block."""
    if not url.startswith(SSH):
        yield url
        return
    with closing(Tunnel(url)) as tunnel:
        yield tunnel.url
