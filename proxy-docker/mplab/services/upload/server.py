"""The file store's origin: takes files in blocks, counts and hashes them as they come, and keeps none of them.

Plain HTTP/1.1 on loopback; nginx is in front of it and passes bodies on without delay.

    server.py PORT

``PUT /files/NAME?offset=N`` is answered with ``{"name", "offset", "bytes", "sha256"}`` of what came. The log has one
JSON object a line: ``{"t", "event": "arrived", "name", "offset", "bytes"}`` whenever more of a block has come, at most
every 0.25 s, and at its end the same with the event ``stored``, or ``cut`` when the sender went away.
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
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A sign of life."""
        if urlsplit(self.path).path == "/files/":
            self._answer(200, {"ok": True})
        else:
            self._answer(404, {"error": f"there is no {self.path}"})

    def do_PUT(self) -> None:
        """Take one block."""
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
        """What the base class has to say, in the log's form."""
        _log("request", what=format % arguments)

    def _receive(self, block: Mapping[str, object], length: int) -> tuple[int, str]:
        """Read a body as it comes: how much came, and its SHA-256."""
        digest, came, told = hashlib.sha256(), 0, 0.0
        while came < length:
            piece = self.rfile.read1(min(_PIECE_BYTES, length - came))
            if not piece:
                break
            digest.update(piece)
            came += len(piece)
            if time.monotonic() - told >= LOG_EVERY_S:
                told = time.monotonic()
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
    """Listens on loopback."""

    daemon_threads = True
    request_queue_size = 64


def make_server(port: int) -> UploadServer:
    """A server that listens on 127.0.0.1:`port` (0: any) and is not serving yet."""
    return UploadServer(("127.0.0.1", port), UploadHandler)


if __name__ == "__main__":
    with make_server(int(sys.argv[1])) as server:
        server.serve_forever()
