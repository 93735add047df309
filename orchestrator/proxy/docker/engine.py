"""A Docker engine: connected to, and its errors in plain words."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from docker import DockerClient
from docker.errors import APIError, DockerException
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ReadTimeout, RequestException

from orchestrator.errors import LabNotReadyError

DEFAULT_URL = "unix:///var/run/docker.sock"
OLDEST_API = (1, 41)
"""That of Docker 20.10."""

SSH = "ssh://"

_TIMEOUT_S = 120
_SSH_CONNECT_S, _SSH_TIMEOUT_S = 15, 60.0


def engine_url(asked: str = "") -> str:
    """``unix://…``, ``ssh://user@host`` or ``tcp://…``: what is asked for, or ``DOCKER_HOST``, or this machine's."""
    return asked or os.environ.get("DOCKER_HOST") or DEFAULT_URL


def connect(url: str) -> DockerClient:
    """A client of the engine at `url`.

    Raises:
        LabNotReadyError: it does not run, may not be used, cannot be reached, or is too old.
    """
    return _client(url, _server_version(url))


@contextmanager
def connected(url: str) -> Iterator[DockerClient]:
    """A client of the engine at `url`, for a ``with`` block.

    Raises:
        LabNotReadyError: see `connect`; or it ended meanwhile.
    """
    client = connect(url)
    try:
        yield client
    except APIError as error:
        raise LabNotReadyError(f"Docker at {url}: {error.explanation or error}") from error
    except (RequestsConnectionError, ReadTimeout) as error:
        raise LabNotReadyError(f"Docker at {url} ended, or does not answer any more; see its log") from error
    finally:
        client.close()


def _client(url: str, version: str) -> DockerClient:
    return DockerClient(base_url=url, timeout=_TIMEOUT_S, use_ssh_client=url.startswith(SSH), version=version)


def _server_version(url: str) -> str:
    """The API that the engine speaks; nothing of the connection is left when there is none."""
    if url.startswith(SSH):
        _try_ssh(url)
    try:
        if url.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(url.removeprefix("unix://"))
        client = _client(url, ".".join(map(str, OLDEST_API)))
        try:
            found = client.version(api_version=False)
        finally:
            client.close()
    except (DockerException, RequestException, OSError, ValueError) as error:
        raise LabNotReadyError(_why_unreachable(url, error)) from error
    version = str(found["ApiVersion"])
    if tuple(int(part) for part in version.split(".")) < OLDEST_API:
        raise LabNotReadyError(f"Docker at {url} is {found['Version']}: 20.10 or newer is needed")
    return version


def _try_ssh(url: str) -> None:
    """Do once what the client does for each connection, and ask nobody: a host key that is not known is an error.

    Raises:
        LabNotReadyError: with what SSH, or Docker's program there, has said.
    """
    ask = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_SSH_CONNECT_S}", "--", url]
    try:
        done = subprocess.run(
            [*ask, "docker system dial-stdio"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SSH_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabNotReadyError(_no_ssh(url, "no ssh on this machine: apt-get install openssh-client")) from error
    except subprocess.TimeoutExpired as error:
        raise LabNotReadyError(_no_ssh(url, f"no answer within {_SSH_TIMEOUT_S:g} s")) from error
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise LabNotReadyError(_no_ssh(url, lines[-1] if lines else f"exit code {done.returncode}"))


def _no_ssh(url: str, why: str) -> str:
    return f"Docker at {url} cannot be reached over SSH: {why.rstrip('.')}; try: ssh {url} docker info"


def _why_unreachable(url: str, error: BaseException) -> str:
    chain = list(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in chain):
        return f"Docker at {url}: no permission; join the group 'docker' (and log in again), or be root"
    if url.startswith(SSH):
        return _no_ssh(url, str(chain[-1]))
    if any(isinstance(cause, FileNotFoundError | ConnectionError) for cause in chain):
        return f"Docker at {url} does not run; start it (systemctl start docker), or name another engine by --engine"
    return f"Docker at {url} cannot be used: {chain[-1]}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error, those that led to it, and those that these carry as arguments."""
    yield error
    inner = [part for part in error.args if isinstance(part, BaseException)]
    inner += [cause for cause in (error.__cause__, error.__context__, getattr(error, "reason", None)) if cause]
    seen = {id(error)}
    for cause in inner:
        if id(cause) not in seen and isinstance(cause, BaseException):
            seen.add(id(cause))
            yield from _causes(cause)
