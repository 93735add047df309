"""The DevTools of an app on a phone: an abstract socket there, and ``adb forward`` to it."""

import contextlib
import socket
import time
from collections.abc import Iterator

from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.ui.tab import DevTools

OFFER_TIMEOUT_S = 10.0
"""So long after its start an app may need to offer them."""
_CONNECT_TIMEOUT_S = 5.0
_POLL_S = 0.2


@contextlib.contextmanager
def open_devtools(phone: AdbPhone, name: str, *, timeout_s: float = OFFER_TIMEOUT_S) -> Iterator[DevTools | None]:
    """Those of an app that runs, for as long as the context.

    Args:
        phone: where it runs.
        name: of the abstract socket: ``chrome_devtools_remote``; "": the app has none.
        timeout_s: how long is waited for it.

    Returns:
        None: nobody listens there.

    Raises:
        DeviceError: the phone did not do its part.
    """
    if not name or not _offered(phone, name, timeout_s):
        yield None
        return
    with phone.forwards.to(f"localabstract:{name}") as port:
        yield DevTools(phone.label, lambda: socket.create_connection(("127.0.0.1", port), _CONNECT_TIMEOUT_S))


def _offered(phone: AdbPhone, name: str, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while True:
        # Chrome's own remote debugging looks there, too: what adb's shell may read on every phone.
        sockets = phone.shell(["cat", "/proc/net/unix"], check=False).stdout
        if any(line.split()[-1:] == [f"@{name}"] for line in sockets.splitlines()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
