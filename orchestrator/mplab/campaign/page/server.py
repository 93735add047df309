"""Serve the page of a campaign on this machine, read-only."""

import contextlib
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import AF_INET, AF_INET6, SHUT_RDWR
from socketserver import TCPServer
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, urlsplit

from mplab.base.errors import InputError, LabNotReadyError, MplabError
from mplab.campaign.page.night import REPORT, Night, trend_name
from mplab.campaign.page.render import render, style_hash
from mplab.format.names import is_loopback

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".css": "text/css; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".xml": "application/xml",
    ".pdf": "application/pdf",
}
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")
_SILENCE_S = 10.0
_REQUEST_S = 20.0
"""Limit for receiving a whole request, seconds: single bytes now and then do not extend it."""

_BACKLOG = 128
_CHUNK = 1 << 16
_NOWHERE = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_REPORT_POLICY = (
    f"default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src data:; {_NOWHERE}"
)


@contextlib.contextmanager
def serve(address: str, port: int, read: Callable[[], Night], *, runs: Path) -> Iterator[str]:
    """Serve a campaign's page by HTTP while the block runs; yield its URL: ``http://127.0.0.1:8080/``.

    ``/`` is the page, ``/status.json`` is `Night.to_json`, ``/runs/RUN/report/…`` are the reports of this campaign's
    runs, ``/runs/trend-EXPERIMENT.html`` are trend pages of its experiments. No other file of the runs is served.

    Args:
        address: loopback address: ``127.0.0.1``, ``::1``, ``localhost``.
        port: TCP port; 0: any free one.
        read: returns the page's content; called for each answer, in threads. After an MplabError, the status is 500.
        runs: folder of the runs.

    Raises:
        InputError: `address` is not a loopback address.
        LabNotReadyError: the port is taken.
    """
    if not is_loopback(address):
        raise InputError(
            f"{address}: the page is served only on this machine (127.0.0.1); "
            f"elsewhere, 'ssh -L 8080:127.0.0.1:{port or 8080} HOST' brings it to http://127.0.0.1:8080/"
        )
    try:
        server = _Server(address, port, partial(_Handler, read=read, runs=runs))
    except OSError as error:
        raise LabNotReadyError(f"{address} port {port}: {error.strerror}: choose another port") from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="page", daemon=True)
    thread.start()
    shown = f"[{address}]" if ":" in address else address
    try:
        yield f"http://{shown}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _BACKLOG
    block_on_close = False

    def __init__(self, address: str, port: int, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        self.address_family = AF_INET6 if ":" in address else AF_INET
        super().__init__((address, port), handler)

    def server_bind(self) -> None:
        """Bind the server's socket without asking name servers for this machine's name, unlike the base class."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors during a request. The usual one is that the browser has closed the connection."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENCE_S
    server_version = "mplab"
    sys_version = ""

    def __init__(self, *args: Any, read: Callable[[], Night], runs: Path) -> None:  # noqa: ANN401 - as the library has it
        self._read = read
        self._runs = runs
        super().__init__(*args)

    def handle(self) -> None:
        """Answer a request; close the connection if the request is not complete within `_REQUEST_S`."""
        self._deadline = threading.Timer(_REQUEST_S, self._hang_up)
        self._deadline.daemon = True
        self._deadline.start()
        try:
            super().handle()
        finally:
            self._deadline.cancel()

    def parse_request(self) -> bool:
        """Parse the request line and read the headers. Then stop the timer that `handle` started.

        Return whether the request is valid; if not, an error has been sent to the browser.
        """
        parsed = super().parse_request()
        self._deadline.cancel()
        return parsed

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(SHUT_RDWR)

    def do_GET(self) -> None:
        """Answer a GET or HEAD request."""
        if not self._host_is_ours():
            self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "this server is called 127.0.0.1 or localhost")
            return
        try:
            parts = [unquote(part, errors="strict") for part in urlsplit(self.path).path.split("/")[1:]]
            self._answer(parts, self._read())
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
            self._refuse(HTTPStatus.NOT_FOUND, "no such page")
        except MplabError as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _not_allowed(self) -> None:
        self.close_connection = True
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "this server is only read", allow=True)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _not_allowed  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as the library has it
        """Log nothing: visitors are private."""

    def _answer(self, parts: list[str], night: Night) -> None:
        match parts:
            case [""]:
                policy = f"default-src 'none'; style-src {style_hash()}; {_NOWHERE}"
                self._send(render(night, "runs").encode(errors="replace"), _TYPES[".html"], policy)
            case ["status.json"]:
                self._send(json.dumps(night.to_json()).encode(), _TYPES[".json"], "default-src 'none'")
            case ["runs", name] if name in map(trend_name, night.trends):
                self._send_file([name])
            case ["runs", run, folder, *rest] if folder == REPORT and run in night.reports:
                self._send_file([run, folder, *(rest or [""])])
            case _:
                self._refuse(HTTPStatus.NOT_FOUND, "no such page")

    def _send_file(self, parts: list[str]) -> None:
        if not parts[-1]:
            self.send_response(HTTPStatus.FOUND)
            self._headers("default-src 'none'")
            self.send_header("Location", quote("/".join(["/runs", *parts[:-1], "index.html"])))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        with open_below(self._runs, parts) as file:
            size = os.fstat(file.fileno()).st_size
            self.send_response(HTTPStatus.OK)
            self._headers(_REPORT_POLICY)
            self.send_header("Content-Type", _TYPES.get(Path(parts[-1]).suffix, "application/octet-stream"))
            self.send_header("Content-Length", str(size))
            self.end_headers()
            while self.command == "GET" and size > 0 and (chunk := file.read(min(size, _CHUNK))):
                self.wfile.write(chunk)
                size -= len(chunk)

    def _send(
        self, body: bytes, content_type: str, policy: str, status: HTTPStatus = HTTPStatus.OK, *, allow: bool = False
    ) -> None:
        self.send_response(status)
        self._headers(policy)
        if allow:
            self.send_header("Allow", "GET, HEAD")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: HTTPStatus, text: str, *, allow: bool = False) -> None:
        self._send(f"{text}\n".encode(), "text/plain; charset=utf-8", "default-src 'none'", status, allow=allow)

    def _headers(self, policy: str) -> None:
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")

    def _host_is_ours(self) -> bool:
        """Return whether the Host header is a loopback name, which protects against DNS rebinding.

        With DNS rebinding, the host name of a foreign page resolves to this machine, and the page's requests have that
        name in the header. Any port is accepted, because an SSH tunnel may use another one.
        """
        hosts = self.headers.get_all("Host") or []
        match = _HOST.fullmatch(hosts[0].strip().lower()) if len(hosts) == 1 else None
        return match is not None and is_loopback(match[1].strip("[]"))


def open_below(folder: Path, parts: list[str]) -> BinaryIO:
    """Open the file ``folder/part/part…`` for reading. No part may be a link, be hidden, or contain a slash.

    Raises:
        FileNotFoundError: the file cannot be opened, or is a link or not a regular file.
    """
    if any(not part or part.startswith(".") or "/" in part or "\0" in part for part in parts):
        raise FileNotFoundError
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for index, part in enumerate(parts):
            kind = os.O_DIRECTORY if index < len(parts) - 1 else os.O_NONBLOCK  # do not wait for the writer of a pipe
            try:
                inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=descriptor)
            except OSError as error:
                raise FileNotFoundError from error
            os.close(descriptor)
            descriptor = inner
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return os.fdopen(descriptor, "rb")
        raise FileNotFoundError  # noqa: TRY301 - closed as after any other error
    except BaseException:
        os.close(descriptor)
        raise
