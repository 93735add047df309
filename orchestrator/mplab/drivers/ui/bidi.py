"""Connect to a browser in another network namespace by WebDriver BiDi (W3C WebDriver BiDi)."""

import ctypes
import os
import socket
import threading
from pathlib import Path

from mplab.base.browser.session import CONNECT_TIMEOUT_S, Session, SessionError

_CLONE_NEWNET = 0x40000000


class BidiSession(Session):
    """One BiDi session.

    Args:
        port: port at which the browser listens, on the loopback of its network namespace.
        network_pid: id of a process in this namespace.

    Raises:
        SessionError: the session did not start.
    """

    def __init__(self, port: int, *, network_pid: int) -> None:
        super().__init__(f"ws://127.0.0.1:{port}/session", socket_in_network_of(network_pid, "127.0.0.1", port))


def socket_in_network_of(pid: int, host: str, port: int) -> socket.socket:
    """Open a TCP connection in the network namespace of the process `pid`.

    A temporary thread enters the namespace and connects; the socket remains in this namespace after the thread ends.

    Raises:
        SessionError: the connection failed.
    """
    made: list[socket.socket] = []
    problems: list[OSError] = []

    def connect() -> None:
        try:
            _enter_network_of(pid)
            made.append(socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S))
        except OSError as error:
            problems.append(error)

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    if problems:
        raise SessionError(f"no connection to {host}:{port} in the network of process {pid}: {problems[0]}")
    return made[0]


def _enter_network_of(pid: int) -> None:
    """Move this thread into the network namespace of a process. Raises OSError when the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
