"""Carries TCP connections from outside the lab to the router's SSH port: ``python tests/router/relay.py FD``.

FD is a listening socket of the network namespace outside. The program forwards its connections from its own namespace.
"""

import socket
import sys
import threading

_BLOCK = 65536


def _carry(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(_BLOCK):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue


def main() -> None:
    """Accept connections until killed."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    while True:
        near, _ = listener.accept()
        try:
            far = socket.create_connection(("10.66.2.1", 22), timeout=5)
        except OSError:
            near.close()
            continue
        far.settimeout(None)
        for end in (near, far):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_carry, args=(source, target), daemon=True).start()


if __name__ == "__main__":
    main()
