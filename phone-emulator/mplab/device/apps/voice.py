"""Make a call without a screen: send voice frames through two relays of a TURN server that is reached by TCP.

This program imports nothing of mplab. ``voice.py URL``, with the URL of the call app
(`proxy-docker/mplab/services/turn`), allocates two relays (RFC 8656), and sends a voice frame from one to the other
every 20 ms. From the first received frame on it prints ``state=talking clock=0:03 received=150 sent=151``. SIGTERM
hangs up. The frames have the size of G.711 frames but contain no speech, so speech quality cannot be rated.
"""

import argparse
import hashlib
import hmac
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.request
from urllib.parse import urlsplit

_COOKIE = 0x2112A442
_HEADER = struct.Struct("!HHI12s")
_ALLOCATE, _PERMISSION, _SEND, _DATA = 0x0003, 0x0008, 0x0016, 0x0017
_SUCCESS = 0x0100
_USERNAME, _INTEGRITY, _PEER, _CONTENT, _REALM, _NONCE, _RELAYED, _TRANSPORT = (
    0x0006,
    0x0008,
    0x0012,
    0x0013,
    0x0014,
    0x0015,
    0x0016,
    0x0019,
)
_UDP = 17
_FRAME_S, _FRAME_BYTES = 0.02, 172
"""Duration of a frame of G.711, s, and its size: 160 bytes of sound and 12 bytes of RTP header."""
_TIMEOUT_S = 15.0
_REPORT_S = 0.25

Attributes = dict[int, bytes]


class Relay:
    """A relay of the TURN server, allocated over a separate TCP connection."""

    def __init__(self, host: str, port: int, user: str, password: str) -> None:
        self._user, self._password = user, password
        self._socket = socket.create_connection((host, port), _TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb")
        wanted = {_TRANSPORT: struct.pack("!I", _UDP << 24)}
        self._write(_ALLOCATE, wanted)
        refused = self.read()[1]
        self._signed: Attributes = {_USERNAME: user.encode(), _REALM: refused[_REALM], _NONCE: refused[_NONCE]}
        key = f"{user}:{refused[_REALM].decode()}:{password}".encode()
        self._key = hashlib.md5(key).digest()  # noqa: S324 - RFC 8489 §9.2.2 says so
        self.address = self._ask(_ALLOCATE, wanted)[_RELAYED]

    def permit(self, peer: bytes) -> None:
        """Allow a peer to send to this relay; `peer` is the peer's address as a STUN attribute."""
        self._ask(_PERMISSION, {_PEER: peer})

    def send(self, peer: bytes, content: bytes) -> None:
        """Send a datagram from this relay to a peer."""
        self._write(_SEND, {_PEER: peer, _CONTENT: content})

    def read(self) -> tuple[int, Attributes]:
        """Return type and attributes of the next STUN message. Raises OSError if the connection has ended."""
        header = self._stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise OSError("the relay has closed the connection")
        kind, length, _, _ = _HEADER.unpack(header)
        body = self._stream.read(length)
        attributes: Attributes = {}
        at = 0
        while at + 4 <= len(body):
            name, size = struct.unpack_from("!HH", body, at)
            attributes.setdefault(name, body[at + 4 : at + 4 + size])
            at += 4 + (size + 3) // 4 * 4
        return kind, attributes

    def _ask(self, kind: int, attributes: Attributes) -> Attributes:
        self._write(kind, {**attributes, **self._signed}, self._key)
        answer, received = self.read()
        if answer != kind | _SUCCESS:
            raise OSError(f"the relay refused ({answer:#06x})")
        return received

    def _write(self, kind: int, attributes: Attributes, key: bytes = b"") -> None:
        body = b"".join(
            struct.pack("!HH", name, len(content)) + content + bytes(-len(content) % 4)
            for name, content in attributes.items()
        )
        transaction = os.urandom(12)
        if key:
            header = _HEADER.pack(kind, len(body) + 24, _COOKIE, transaction)
            body += struct.pack("!HH", _INTEGRITY, 20) + hmac.digest(key, header + body, "sha1")
        self._socket.sendall(_HEADER.pack(kind, len(body), _COOKIE, transaction) + body)


class VoiceCall:
    """A call: voice frames that are sent from the relay `caller` to the relay `echo`."""

    def __init__(self, caller: Relay, echo: Relay) -> None:
        self._caller, self._echo = caller, echo
        self.sent = self.received = 0
        self.talking: float | None = None
        self.error = ""

    def listen(self) -> None:
        """Count the frames that arrive at the relay `echo`, until its connection ends."""
        try:
            while True:
                kind, _ = self._echo.read()
                if kind == _DATA:
                    self.received += 1
                    self.talking = self.talking or time.monotonic()
        except OSError as error:
            self.error = str(error)

    def talk(self) -> None:
        """Send a frame every 20 ms, and print the numbers of frames. Raises OSError when the connection ends."""
        due = reported = time.monotonic()
        while not self.error:
            time.sleep(max(0.0, due - time.monotonic()))
            due += _FRAME_S
            self._caller.send(self._echo.address, bytes(_FRAME_BYTES))
            self.sent += 1
            if self.talking and time.monotonic() - reported >= _REPORT_S:
                reported = time.monotonic()
                seconds = int(reported - self.talking)
                clock = f"{seconds // 60}:{seconds % 60:02}"
                _tell(f"state=talking clock={clock} received={self.received} sent={self.sent}")
        raise OSError(self.error)


def configuration(url: str, cacert: str) -> tuple[str, int, str, str]:
    """Return host, port, user and password of the TURN server from the call app's configuration. Raises OSError."""
    context = ssl.create_default_context(cafile=cacert or None) if url.startswith("https:") else None
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
    with urllib.request.build_opener(*handlers).open(f"{url.rstrip('/')}/config.json", timeout=_TIMEOUT_S) as answer:
        server = json.load(answer)["iceServers"][0]
    address = urlsplit(server["urls"].replace("turn:", "turn://"))
    return address.hostname or "", address.port or 3478, server["username"], server["credential"]


def main() -> int:
    """Run the program until the call fails or is cut. Return the exit code, 1."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--cacert", default="")
    options = parser.parse_args()
    try:
        where = configuration(options.url, options.cacert)
        caller, echo = Relay(*where), Relay(*where)
        caller.permit(echo.address)
        echo.permit(caller.address)
        call = VoiceCall(caller, echo)
        threading.Thread(target=call.listen, daemon=True).start()
        call.talk()
    except (OSError, ValueError, KeyError) as error:
        _tell(str(error) or type(error).__name__)
    return 1


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
