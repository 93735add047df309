"""Connect to the DevTools of an app on a phone, by ``adb forward`` to an abstract socket of the app."""

import contextlib
import socket
from collections.abc import Iterator

from mplab.base.browser.tab import DevTools
from mplab.base.polling import wait_until
from mplab.drivers.phone.adb.phone import AdbPhone

OFFER_TIMEOUT_S = 10.0
"""Time, in seconds, that an app may take after its start to offer DevTools."""
_CONNECT_TIMEOUT_S = 5.0
_POLL_S = 0.2


@contextlib.contextmanager
def open_devtools(phone: AdbPhone, name: str, *, timeout_s: float = OFFER_TIMEOUT_S) -> Iterator[DevTools | None]:
    """Connect to the DevTools of a running app during the context.

    Args:
        phone: phone of the app.
        name: name of the abstract socket: ``chrome_devtools_remote``; "": the app has none.
        timeout_s: maximum wait for the socket, seconds.

    Yields:
        The DevTools; None: no process listens on the socket.

    Raises:
        DeviceError: the phone failed.
    """
    if not name or not _offered(phone, name, timeout_s):
        yield None
        return
    with phone.forwards.to(f"localabstract:{name}") as port:
        yield DevTools(phone.label, lambda: socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT_S))


def _offered(phone: AdbPhone, name: str, timeout_s: float) -> bool:
    def offered() -> bool:
        # Chrome's own remote debugging reads this file, too: adb's shell may read it on every phone.
        sockets = phone.shell(["cat", "/proc/net/unix"], check=False).stdout
        return any(line.split()[-1:] == [f"@{name}"] for line in sockets.splitlines())

    return wait_until(offered, timeout_s, interval_s=_POLL_S)
