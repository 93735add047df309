"""Connect to a Docker engine and explain its errors."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from docker import DockerClient
from docker.errors import APIError, DockerException
from requests.exceptions import ConnectionError as RequestsConnectionError
from requests.exceptions import ReadTimeout, RequestException

from mplab.base.errors import LabNotReadyError
from mplab.drivers.proxy.docker.tunnel import SSH, Tunnel

OLDEST_API = (1, 41)
"""API version of Docker 20.10."""

_TIMEOUT_S = 120


def connect(url: str) -> DockerClient:
    """Return a client of the engine at `url`.

    Raises:
        LabNotReadyError: the engine does not run, cannot be reached or used, or is too old.
    """
    if not url.startswith(SSH):
        return _client(url, _server_version(url))
    tunnel = Tunnel(url)
    try:
        return _TunnelledClient(tunnel, _server_version(tunnel.url, url))
    except BaseException:
        tunnel.close()
        raise


@contextmanager
def connected(url: str) -> Iterator[DockerClient]:
    """Yield a client of the engine at `url`.

    Raises:
        LabNotReadyError: see `connect`. Errors of the engine during the context also become this error.
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
    return DockerClient(base_url=url, timeout=_TIMEOUT_S, version=version)


class _TunnelledClient(DockerClient):
    """Client of an engine behind a tunnel; `close` also closes the tunnel."""

    def __init__(self, tunnel: Tunnel, version: str) -> None:
        super().__init__(base_url=tunnel.url, timeout=_TIMEOUT_S, version=version)
        self._tunnel = tunnel

    def close(self) -> None:
        """Close client and tunnel."""
        super().close()
        self._tunnel.close()


def _server_version(url: str, shown: str = "") -> str:
    """Return the API version of the engine, over a separate connection that is closed afterwards.

    Args:
        url: URL of the engine.
        shown: name of the engine in errors; "": `url`.

    Raises:
        LabNotReadyError: the engine cannot be used or is too old.
    """
    shown = shown or url
    try:
        if url.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(url.removeprefix("unix://"))
        client = _client(url, ".".join(map(str, OLDEST_API)))
        try:
            version_facts = client.version(api_version=False)
        finally:
            client.close()
    except (DockerException, RequestException, OSError, ValueError) as error:
        raise LabNotReadyError(_why_unreachable(shown, error)) from error
    version = str(version_facts["ApiVersion"])
    if tuple(int(part) for part in version.split(".")) < OLDEST_API:
        raise LabNotReadyError(f"Docker at {shown} is {version_facts['Version']}: 20.10 or newer is needed")
    return version


def _why_unreachable(url: str, error: BaseException) -> str:
    chain = list(_causes(error))
    if any(isinstance(cause, PermissionError) for cause in chain):
        return f"Docker at {url}: no permission; join the group 'docker' (and log in again), or be root"
    if any(isinstance(cause, FileNotFoundError | ConnectionError) for cause in chain):
        return f"Docker at {url} does not run; start it (systemctl start docker), or name another engine by --engine"
    return f"Docker at {url} cannot be used: {chain[-1]}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its causes, and the exceptions among its arguments, recursively."""
    yield error
    inner = [part for part in error.args if isinstance(part, BaseException)]
    inner += [cause for cause in (error.__cause__, error.__context__, getattr(error, "reason", None)) if cause]
    seen = {id(error)}
    for cause in inner:
        if id(cause) not in seen and isinstance(cause, BaseException):
            seen.add(id(cause))
            yield from _causes(cause)
