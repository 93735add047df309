"""Implement `Automation` by uiautomator2, whose server runs on the phone and is reached by adb."""

import contextlib
import io
from collections.abc import Iterator, Sequence

import adbutils
import uiautomator2
from requests import RequestException
from uiautomator2.exceptions import BaseException as UiAutomatorError

from mplab.base.errors import LabNotReadyError
from mplab.drivers.ui.android import (
    AndroidSettings,
    AndroidUi,
    AutomationError,
    android_session,
)

FAILURES = (UiAutomatorError, adbutils.AdbError, RequestException, OSError, EOFError, ValueError, KeyError)
"""Exceptions of client, adb and connection when the phone fails; ValueError and KeyError mean truncated answers."""


class UiAutomator2:
    """`Automation` by the phone's uiautomator2 server, which the constructor starts.

    Args:
        phone: the phone, as a device of `adbutils`.
        name: name of the phone in messages; "": its serial.

    Raises:
        AutomationError: the server cannot be started.
    """

    def __init__(self, phone: adbutils.AdbDevice, name: str = "") -> None:
        self.device = name or phone.serial
        self._phone = phone
        with _explained("starting uiautomator2's server"):
            self._client = uiautomator2.Device(phone)

    def close(self) -> None:
        """Stop uiautomator2's server on the phone."""
        with contextlib.suppress(*FAILURES):
            self._client.stop_uiautomator()

    def hierarchy(self) -> str:
        """Return the element tree of the screen as XML."""
        with _explained("reading the element tree"):
            return str(self._client.dump_hierarchy())

    def screenshot(self) -> bytes:
        """Return the screen as PNG."""
        with _explained("taking a screenshot"):
            target = io.BytesIO()
            self._client.screenshot().save(target, "PNG")
            return target.getvalue()

    def tap(self, x: int, y: int) -> None:
        """Tap a point of the screen; `x` and `y` are pixels."""
        with _explained("tapping"):
            self._client.click(x, y)

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, duration_s: float) -> None:
        """Swipe from one point of the screen to another; coordinates are pixels."""
        with _explained("swiping"):
            self._client.swipe(x_from, y_from, x_to, y_to, duration=duration_s)

    def type_focused(self, text: str, *, secret: bool) -> None:
        """Replace the text of the field that has the focus. No keyboard is used, so all characters are possible.

        The client logs no text, so `secret` has no effect.
        """
        del secret
        with _explained("typing"):
            self._client(focused=True).set_text(text)

    def press(self, key: str) -> None:
        """Press a key: ``back``, ``home`` or ``enter``."""
        with _explained(f"pressing {key}"):
            self._client.press(key)

    def start(self, package: str, activity: str) -> None:
        """Start an app; `activity` "": the activity that a launcher starts."""
        target = ["-n", f"{package}/{activity}"] if activity else []
        main = ["-a", "android.intent.action.MAIN", "-c", "android.intent.category.LAUNCHER"]
        if not activity:
            target = ["-p", package]
        self._am(["start", "-W", *main, *target], f"starting {package}")

    def open_link(self, url: str, package: str) -> None:
        """Open a link in an app; `package` "": the phone chooses the app."""
        to = ["-p", package] if package else []
        self._am(["start", "-W", "-a", "android.intent.action.VIEW", "-d", url, *to], f"opening {url}")

    def stop(self, package: str) -> None:
        """Stop the app `package`."""
        self._am(["force-stop", package], f"ending {package}")

    def clear(self, package: str) -> None:
        """Delete the stored data of the app `package`."""
        self._shell(["pm", "clear", package], f"clearing {package}", good="Success")

    def version_of(self, package: str) -> str:
        """Return the version of the installed app `package`; ``?`` if it is unknown."""
        with _explained(f"reading the version of {package}"):
            info = self._phone.app_info(package)
        return str(info.version_name) if info else "?"

    def describe(self) -> str:
        """Return model and Android version of the phone: ``Pixel 7, Android 13``."""
        with _explained("reading the phone's model"):
            return f"{self._phone.prop.model}, Android {self._phone.getprop('ro.build.version.release')}"

    def _am(self, arguments: Sequence[str], action: str) -> None:
        self._shell(["am", *arguments], action, bad="Error")

    def _shell(self, argv: Sequence[str], action: str, *, good: str = "", bad: str = "") -> None:
        with _explained(action):
            answer = self._client.shell(list(argv))
        output = str(answer.output).strip()
        if answer.exit_code != 0 or good not in output or (bad and bad in output):
            raise AutomationError(f"{action}: {output.splitlines()[-1] if output else f'exit code {answer.exit_code}'}")


def phone_at(adb_port: int, serial: str = "") -> adbutils.AdbDevice:
    """Return a phone that is connected to an adb server on this host.

    Args:
        adb_port: port of the adb server on this host.
        serial: serial of the phone; "": the only phone.

    Raises:
        LabNotReadyError: the server does not answer, the phone is missing, or there are several phones and no
            `serial`.
    """
    client = adbutils.AdbClient(port=adb_port)
    try:
        serials = [info.serial for info in client.list() if info.state == "device"]
    except (adbutils.AdbError, OSError) as error:
        raise LabNotReadyError(f"adb server on port {adb_port}: {error}") from error
    if serial not in serials if serial else len(serials) != 1:
        wanted = f"no phone {serial}" if serial else "one phone is needed, or its serial"
        raise LabNotReadyError(f"adb server on port {adb_port}: {wanted}; there is: {', '.join(serials) or 'none'}")
    return client.device(serial or serials[0])


@contextlib.contextmanager
def _explained(action: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise AutomationError(f"{action}: {text[:300]}") from error


def uiautomator2_session(
    phone: adbutils.AdbDevice, settings: AndroidSettings, name: str = ""
) -> contextlib.AbstractContextManager[AndroidUi]:
    """Return a context that yields the user interface of a phone, by uiautomator2; at its end, opened apps are stopped.

    Args:
        phone: the phone, as a device of `adbutils`.
        settings: settings of the session.
        name: name of the phone in messages; "": its serial.

    Raises:
        StepError: the session did not start.
    """
    return android_session(name or phone.serial, lambda: UiAutomator2(phone, name), settings)
