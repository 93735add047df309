"""Run the dashboard's web server in a thread."""

import asyncio
import contextlib
import errno
import secrets
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.files import read_secret
from mplab.dashboard.access import TOKEN, Access
from mplab.dashboard.app import Dashboard
from mplab.dashboard.watch import Watcher
from mplab.format.names import is_loopback

MOST_CONNECTIONS = 256
"""Number of connections; further ones get the status 503."""
_SILENCE_S = 10.0
"""A connection without a request is closed after one to two times this duration."""
_BACKLOG = 128
_LEAST_TOKEN = 16
"""Minimum number of characters of a token."""


class _Protocol(H11Protocol):
    """Closes connections that do not complete a request in time: single bytes now and then do not extend it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to watch a new connection."""
        super().connection_made(transport)
        self._idle_cycle: object = self
        self.loop.call_later(_SILENCE_S, self._check)

    def _check(self) -> None:
        if self.transport.is_closing():
            return
        cycle: RequestResponseCycle | None = self.cycle
        idle = cycle is None or cycle.response_complete
        if idle and self._idle_cycle is cycle:
            self.transport.close()
            return
        self._idle_cycle = cycle if idle else self
        self.loop.call_later(_SILENCE_S, self._check)


@dataclass(frozen=True)
class Served:
    """A running dashboard.

    Attributes:
        url: its URL, without the token.
        first_url: URL for the first visit, with the token if one is needed.
    """

    url: str
    first_url: str


@contextlib.contextmanager
def serve(
    folders: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token_file: Path | None = None,
    names: Sequence[str] = (),
) -> Iterator[Served]:
    """Serve the dashboard by HTTP while the block runs.

    Args:
        folders: folders of runs and campaigns.
        host: address to listen on. Other addresses than loopback ones need a token; one is generated if there is no
            `token_file`.
        port: TCP port; 0: any free one.
        token_file: private file whose only line is the token.
        names: host names by which browsers may call the server; they need a token, because other machines use them.

    Raises:
        InputError: a folder is missing, the address is wrong, the file of the token is not private or too short, or
            there are `names` without a token.
        LabNotReadyError: the port is taken, or the address is not one of this machine.
    """
    for folder in folders:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file. A folder of runs or campaigns is needed")
    token = _token(host, token_file)
    if names and not token:
        raise InputError("--name needs a token: add --token-file FILE")
    listener = _listen(host, port)
    access = Access(token, (*names, host), only_loopback=is_loopback(host))
    dashboard = Dashboard(Watcher(folders), access)
    config = Config(
        dashboard.application(),
        http=_Protocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="dashboard", daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    url = f"http://{shown}:{listener.getsockname()[1]}/"
    try:
        yield Served(url, f"{url}?{TOKEN}={token}" if token else url)
    finally:
        dashboard.live.close()
        server.should_exit = True
        thread.join()
        listener.close()


def _token(host: str, file: Path | None) -> str:
    if file is not None:
        token = read_secret(file)
        if len(token) < _LEAST_TOKEN or not token.isascii():
            raise InputError(f"{file}: a token needs at least {_LEAST_TOKEN} ASCII characters")
        return token
    return "" if is_loopback(host) else secrets.token_urlsafe(32)


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises InputError or LabNotReadyError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{host}: no address of this machine: {error}") from error
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        remedy = ": choose another port" if error.errno == errno.EADDRINUSE else ""
        raise LabNotReadyError(f"{host} port {port}: {error.strerror}{remedy}") from error
    return listener
