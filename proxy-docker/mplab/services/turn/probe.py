"""Check a TURN server over TCP: request a relay without credentials. A working server answers 401 (RFC 8656 §7.2).

Usage: ``probe.py ADDRESS PORT``. The exit code is 0 if the server answered 401. Otherwise the program prints the
problem to standard error.
"""

import os
import socket
import struct
import sys

_TIMEOUT_S = 1.0
_ALLOCATE, _ALLOCATE_ERROR = 0x0003, 0x0113
_COOKIE = 0x2112A442
_ERROR_CODE, _REQUESTED_TRANSPORT = 0x0009, 0x0019
_UDP = 17
_HEADER = struct.Struct("!HHI12s")


def _ask(address: str, port: int) -> str:
    """Send an Allocate request without credentials. Return "" if the server answers 401, otherwise the problem.

    Raises:
        OSError: the server cannot be reached, or does not answer.
    """
    attribute = struct.pack("!HHI", _REQUESTED_TRANSPORT, 4, _UDP << 24)
    transaction = os.urandom(12)
    with socket.create_connection((address, port), _TIMEOUT_S) as server:
        server.sendall(_HEADER.pack(_ALLOCATE, len(attribute), _COOKIE, transaction) + attribute)
        stream = server.makefile("rb")
        header = stream.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return "the connection was closed"
        kind, length, cookie, answered = _HEADER.unpack(header)
        if (kind, cookie, answered) != (_ALLOCATE_ERROR, _COOKIE, transaction):
            return f"an answer of type {kind:#06x}"
        code = _error_code(stream.read(length))
    return "" if code == 401 else f"error code {code}"


def _error_code(attributes: bytes) -> int:
    at = 0
    while at + 8 <= len(attributes):
        kind, length = struct.unpack_from("!HH", attributes, at)
        if kind == _ERROR_CODE:
            return attributes[at + 6] * 100 + attributes[at + 7]
        at += 4 + (length + 3) // 4 * 4
    return 0


if __name__ == "__main__":
    try:
        problem = _ask(sys.argv[1], int(sys.argv[2]))
    except OSError as error:
        problem = str(error)
    sys.exit(problem or 0)
