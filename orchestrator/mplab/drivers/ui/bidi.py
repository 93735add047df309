"""Connect to a browser in another network namespace by WebDriver BiDi (W3C WebDriver BiDi)."""

import socket

from mplab.base.browser.session import CONNECT_TIMEOUT_S, BrowserSession, SessionError, websocket_to
from mplab.base.kernel import socket_in

_HOST = "127.0.0.1"


class BidiSession(BrowserSession):
    """Connection to a browser for one WebDriver BiDi session; the constructor opens it.

    Args:
        port: port at which the browser listens, on the loopback interface of the browser's network namespace.
        network_pid: id of a process in that namespace.

    Raises:
        SessionError: the browser does not accept the connection.
    """

    def __init__(self, port: int, *, network_pid: int) -> None:
        super().__init__(websocket_to(f"ws://{_HOST}:{port}/session", _connect(network_pid, port)))


def _connect(pid: int, port: int) -> socket.socket:
    sock = None
    try:
        sock = socket_in(pid, socket.AF_INET)
        sock.settimeout(CONNECT_TIMEOUT_S)
        sock.connect((_HOST, port))
    except OSError as error:
        if sock is not None:
            sock.close()
        raise SessionError(f"no connection to {_HOST}:{port} in the network of process {pid}: {error}") from error
    return sock
