"""Implement `Automation` by Appium and its UiAutomator2 driver, for labs that have them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from appium.options.common import AppiumOptions
from appium.webdriver import Remote
from appium.webdriver.client_config import AppiumClientConfig
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.proxy import Proxy, ProxyType

from mplab.base.ports import free_port
from mplab.drivers.ui.android import (
    AndroidSettings,
    AndroidUi,
    AutomationError,
    android_session,
)
from mplab.drivers.ui.chromium import FAILURES, kept_out_of_logs

_SESSION_TIMEOUT_S = 120.0
_ANSWER_TIMEOUT_S = 60.0
_QUIT_TIMEOUT_S = 20.0
_KEYS = {"back": 4, "home": 3, "enter": 66}


@dataclass(frozen=True)
class AppiumPhone:
    """Addresses of a phone and of its Appium server.

    Attributes:
        server_url: URL of the Appium server.
        serial: serial of the phone.
        adb_port: port of the adb server to which the phone is connected.
        install: True: Appium installs its server and its helper on the phone, which needs an Android SDK with build
            tools (``aapt2``) on this host. False: both are already installed.
        name: name of the phone in messages; "": the serial.
    """

    server_url: str
    serial: str
    adb_port: int = 5037
    install: bool = True
    name: str = ""

    @property
    def device(self) -> str:
        """Name of the phone in messages."""
        return self.name or self.serial


class AppiumAutomation:
    """`Automation` by one session of Appium, which the constructor starts.

    Raises:
        AutomationError: the session did not start.
    """

    def __init__(self, phone: AppiumPhone) -> None:
        self.device = phone.device
        self._config = AppiumClientConfig(
            remote_server_addr=phone.server_url,
            proxy=Proxy(raw={"proxyType": ProxyType.DIRECT}),
            init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": False}},
        )
        self._config.timeout = _SESSION_TIMEOUT_S
        options = AppiumOptions().load_capabilities(capabilities(phone))
        with _explained("beginning a session of Appium"):
            self._driver = Remote(command_executor=phone.server_url, options=options, client_config=self._config)
        self._config.timeout = _ANSWER_TIMEOUT_S

    def close(self) -> None:
        """End the session, and Appium's server on the phone."""
        self._config.timeout = _QUIT_TIMEOUT_S
        with contextlib.suppress(*FAILURES):
            self._driver.quit()

    def hierarchy(self) -> str:
        """Return the element tree of the screen as XML."""
        with _explained("reading the element tree"):
            return str(self._driver.page_source)

    def screenshot(self) -> bytes:
        """Return the screen as PNG."""
        with _explained("taking a screenshot"):
            return bytes(self._driver.get_screenshot_as_png())

    def tap(self, x: int, y: int) -> None:
        """Tap a point of the screen; `x` and `y` are pixels."""
        self._mobile("tapping", "clickGesture", x=x, y=y)

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, duration_s: float) -> None:
        """Swipe from one point of the screen to another; coordinates are pixels."""
        with _explained("swiping"):
            self._driver.swipe(x_from, y_from, x_to, y_to, round(duration_s * 1000))

    def type_focused(self, text: str, *, secret: bool) -> None:
        """Replace the text of the field that has the focus; with `secret`, Appium masks the text in its log."""
        with _explained("typing"), kept_out_of_logs(self._driver) if secret else contextlib.nullcontext():
            element = self._driver.switch_to.active_element
            self._driver.execute_script("mobile: replaceElementValue", {"elementId": element.id, "text": text})

    def press(self, key: str) -> None:
        """Press a key: ``back``, ``home`` or ``enter``."""
        with _explained(f"pressing {key}"):
            self._driver.press_keycode(_KEYS[key])

    def start(self, package: str, activity: str) -> None:
        """Start an app; `activity` "": the activity that a launcher starts."""
        if activity:
            component = f"{package}/{activity}"
            self._mobile(f"starting {package}", "startActivity", component=component, wait=True)
        else:
            self._mobile(f"starting {package}", "activateApp", appId=package)

    def open_link(self, url: str, package: str) -> None:
        """Open a link in an app; `package` "": the phone chooses the app."""
        self._mobile(f"opening {url}", "deepLink", url=url, **({"package": package} if package else {}))

    def stop(self, package: str) -> None:
        """Stop the app `package`."""
        self._mobile(f"ending {package}", "terminateApp", appId=package)

    def clear(self, package: str) -> None:
        """Delete the stored data of the app `package`."""
        self._mobile(f"clearing {package}", "clearApp", appId=package)

    def _mobile(self, action: str, command: str, **arguments: object) -> None:
        with _explained(action):
            self._driver.execute_script(f"mobile: {command}", arguments)


def capabilities(phone: AppiumPhone) -> dict[str, object]:
    """Return the WebDriver capabilities that request a session of Appium's UiAutomator2 driver on `phone`."""
    prepared = {} if phone.install else {"appium:skipServerInstallation": True, "appium:skipDeviceInitialization": True}
    return {
        "platformName": "Android",
        "appium:automationName": "UiAutomator2",
        "appium:udid": phone.serial,
        "appium:adbPort": phone.adb_port,
        # Other clients share the adb server.
        "appium:suppressKillServer": True,
        # A fixed port: two sessions could find the same free port if the drivers searched themselves.
        "appium:systemPort": free_port(),
        "appium:autoLaunch": False,
        "appium:noReset": True,
        "appium:skipUnlock": True,
        "appium:skipLogcatCapture": True,
        # Some phones forbid shell to change this policy; it is for hidden APIs, which are not used.
        "appium:ignoreHiddenApiPolicyError": True,
        "appium:disableWindowAnimation": True,
        "appium:newCommandTimeout": 600,
        **prepared,
    }


@contextlib.contextmanager
def _explained(action: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        text = (error.msg if isinstance(error, WebDriverException) else str(error)) or type(error).__name__
        raise AutomationError(f"{action}: {text.strip().splitlines()[0][:300]}") from error


def appium_session(phone: AppiumPhone, settings: AndroidSettings) -> contextlib.AbstractContextManager[AndroidUi]:
    """Return a context that yields the user interface of a phone, by Appium; at its end, opened apps are stopped.

    Raises:
        StepError: the session did not start.
    """
    return android_session(phone.device, lambda: AppiumAutomation(phone), settings)
