"""Receive the blocks of uploaded files, count and hash their bytes as they arrive, and discard them.

The server speaks plain HTTP/1.1 on loopback, behind nginx, which forwards bodies without buffering.

    server.py PORT

The answer to ``PUT /files/NAME?offset=N`` is ``{"name", "offset", "bytes", "sha256"}`` of the received block. The log
has one JSON object per line, ``{"t", "event", "name", "offset", "bytes"}``. While a block arrives, ``event`` is
``arrived``, at most every 0.25 s; at its end it is ``stored``, or ``cut`` if the sender closed the connection.
"""

import hashlib
import http.server
import json
import sys
import time
from collections.abc import Mapping
from urllib.parse import parse_qs, unquote, urlsplit

LOG_EVERY_S = 0.25
_PIECE_BYTES = 1 << 16


class UploadHandler(http.server.BaseHTTPRequestHandler):
    """Handler of the HTTP requests on one connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer the health check GET ``/files/``."""
        if urlsplit(self.path).path == "/files/":
            self._answer(200, {"ok": True})
        else:
            self._answer(404, {"error": f"there is no {self.path}"})

    def do_PUT(self) -> None:
        """Receive one block of a file, and answer with its length and SHA-256."""
        parts = urlsplit(self.path)
        offset = parse_qs(parts.query).get("offset", ["0"])[-1]
        length = self.headers.get("Content-Length", "")
        folder, _, name = unquote(parts.path).rpartition("/")
        if folder != "/files" or not name or not (offset.isdecimal() and length.isdecimal()):
            self.close_connection = True
            self._answer(400, {"error": "PUT /files/NAME?offset=N with a length is needed"})
            return
        block = {"name": name, "offset": int(offset)}
        came, sha256 = self._receive(block, int(length))
        if came < int(length):
            self.close_connection = True
            _log("cut", **block, bytes=came)
        else:
            _log("stored", **block, bytes=came)
            self._answer(200, {**block, "bytes": came, "sha256": sha256})

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name in the base class
        """Print a log message of the base class as one line of JSON, with the event ``request``."""
        _log("request", what=format % arguments)

    def _receive(self, block: Mapping[str, object], length: int) -> tuple[int, str]:
        """Read a block's body as it arrives, and log progress. Return number and SHA-256 of the received bytes."""
        digest, came, logged = hashlib.sha256(), 0, 0.0
        while came < length:
            piece = self.rfile.read1(min(_PIECE_BYTES, length - came))
            if not piece:
                break
            digest.update(piece)
            came += len(piece)
            if time.monotonic() - logged >= LOG_EVERY_S:
                logged = time.monotonic()
                _log("arrived", **block, bytes=came)
        return came, digest.hexdigest()

    def _answer(self, status: int, content: Mapping[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _log(event: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"t": round(time.time(), 6), "event": event, **fields}) + "\n")
    sys.stdout.flush()


class UploadServer(http.server.ThreadingHTTPServer):
    """HTTP server for uploads, with one thread for each connection."""

    daemon_threads = True
    request_queue_size = 64


def make_server(port: int) -> UploadServer:
    """Return a server that listens on 127.0.0.1:`port`; 0: any free port. Its `serve_forever` answers the requests."""
    return UploadServer(("127.0.0.1", port), UploadHandler)


if __name__ == "__main__":
    with make_server(int(sys.argv[1])) as server:
        server.serve_forever()
