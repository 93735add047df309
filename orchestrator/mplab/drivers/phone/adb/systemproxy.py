"""The HTTP proxy in Android's settings, which many apps take: those with WebView, Chrome's network stack, OkHttp.

The shell's user may write ``settings put global http_proxy HOST:PORT``, an old setting: when it changes, Android's
ConnectivityService (ProxyTracker, Android 10 to 16) makes it the proxy of all networks, tells the apps that run, and
writes what it has understood to ``global_http_proxy_host`` and ``global_http_proxy_port``. ``:0`` means none; a setting
that is only deleted changes nothing.
"""

import contextlib
import shlex
import time
from collections.abc import Iterator

from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.phone import AdbPhone

NONE = ":0"
_TAKEN_TIMEOUT_S = 10.0
_POLL_S = 0.1


class SystemProxy:
    """Of one phone. Its undo is registered when this is made: the proxy of before, or none.

    Args:
        phone: whose.

    Raises:
        DeviceError: it does not say which proxy it has.
    """

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone
        before = self._get("http_proxy")
        self._back = _put(NONE if before in ("", "null") else before)
        phone.register(f"{phone.label}: proxy in Android's settings", self._back)

    @contextlib.contextmanager
    def set(self, address: str) -> Iterator[None]:
        """Have apps take the proxy `address`, ``HOST:PORT``, for as long as the context.

        Raises:
            DeviceError: Android has not taken it.
        """
        try:
            self._phone.script(_put(address))
            self._wait(address)
            yield
        finally:
            # A phone that is lost now gets it back when it is given back.
            with contextlib.suppress(DeviceError):
                self._phone.script(self._back)

    def _wait(self, address: str) -> None:
        deadline = time.monotonic() + _TAKEN_TIMEOUT_S
        while (found := f"{self._get('global_http_proxy_host')}:{self._get('global_http_proxy_port')}") != address:
            if time.monotonic() > deadline:
                text = f"Android has not taken the proxy {address} in its settings: it says {found}"
                raise DeviceError(self._phone.label, text)
            time.sleep(_POLL_S)

    def _get(self, key: str) -> str:
        return self._phone.script(f"settings get global {key}").stdout.strip()


def _put(address: str) -> str:
    return f"settings put global http_proxy {shlex.quote(address)}"
