"""Set the HTTP proxy in Android's settings.

Many apps use this proxy: those with WebView, Chrome's network stack or OkHttp.

adb's shell user may run ``settings put global http_proxy HOST:PORT``, an old setting. When it changes, Android's
ConnectivityService (ProxyTracker, Android 10 to 16) applies the proxy to all networks, notifies running apps, and
writes the parsed value to ``global_http_proxy_host`` and ``global_http_proxy_port``. ``:0`` means no proxy. Deleting
the setting has no effect.
"""

import contextlib
import shlex
from collections.abc import Iterator

from mplab.base.errors import DeviceError
from mplab.base.polling import wait_until
from mplab.drivers.phone.adb.phone import AdbPhone

NONE = ":0"
_TAKEN_TIMEOUT_S = 10.0
_POLL_S = 0.1


class SystemProxy:
    """Proxy setting of one phone. The constructor registers an undo that restores the previous setting.

    Args:
        phone: phone to configure.

    Raises:
        DeviceError: the current setting cannot be read.
    """

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone
        before = self._get("http_proxy")
        self._back = _put(NONE if before in ("", "null") else before)
        phone.register(f"{phone.label}: proxy in Android's settings", self._back)

    @contextlib.contextmanager
    def set(self, address: str) -> Iterator[None]:
        """Set the proxy `address`, ``HOST:PORT``, for the duration of the context; then restore the previous setting.

        Raises:
            DeviceError: Android did not apply the setting within 10 s.
        """
        try:
            self._phone.script(_put(address))
            self._wait(address)
            yield
        finally:
            # If the phone is lost now, the registered undo restores the setting later.
            with contextlib.suppress(DeviceError):
                self._phone.script(self._back)

    def _wait(self, address: str) -> None:
        current = ""

        def taken() -> bool:
            nonlocal current
            current = self._address()
            return current == address

        if not wait_until(taken, _TAKEN_TIMEOUT_S, interval_s=_POLL_S):
            text = f"Android has not taken the proxy {address} in its settings: it says {current}"
            raise DeviceError(self._phone.label, text)

    def _address(self) -> str:
        return f"{self._get('global_http_proxy_host')}:{self._get('global_http_proxy_port')}"

    def _get(self, key: str) -> str:
        return self._phone.script(f"settings get global {key}").stdout.strip()


def _put(address: str) -> str:
    return f"settings put global http_proxy {shlex.quote(address)}"
