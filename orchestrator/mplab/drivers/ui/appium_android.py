"""`Ui` on Android through Appium and its UiAutomator2 driver, for labs that have them."""

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
    """Where a phone is.

    Attributes:
        server_url: where Appium listens.
        serial: the phone's.
        adb_port: of the adb server that has it.
        install: let Appium install its server and its helper on the phone: this host needs an Android SDK with build
            tools (``aapt2``) for it. False: they have been installed before.
        name: for messages; by default the serial.
    """

    server_url: str
    serial: str
    adb_port: int = 5037
    install: bool = True
    name: str = ""

    @property
    def device(self) -> str:
        """What messages call it."""
        return self.name or self.serial


class AppiumAutomation:
    """`Automation` by one session of Appium.

    Raises:
        AutomationError: there is no session.
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
        """End the session, and with it the server on the phone."""
        self._config.timeout = _QUIT_TIMEOUT_S
        with contextlib.suppress(*FAILURES):
            self._driver.quit()

    def hierarchy(self) -> str:
        """The element tree."""
        with _explained("reading the element tree"):
            return str(self._driver.page_source)

    def screenshot(self) -> bytes:
        """The screen as PNG."""
        with _explained("taking a screenshot"):
            return bytes(self._driver.get_screenshot_as_png())

    def tap(self, x: int, y: int) -> None:
        """A finger at a point."""
        self._mobile("tapping", "clickGesture", x=x, y=y)

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, duration_s: float) -> None:
        """A finger that moves."""
        with _explained("swiping"):
            self._driver.swipe(x_from, y_from, x_to, y_to, round(duration_s * 1000))

    def type_focused(self, text: str, *, secret: bool) -> None:
        """Set the text of the field that has the focus."""
        with _explained("typing"), kept_out_of_logs(self._driver) if secret else contextlib.nullcontext():
            element = self._driver.switch_to.active_element
            self._driver.execute_script("mobile: replaceElementValue", {"elementId": element.id, "text": text})

    def press(self, key: str) -> None:
        """A key."""
        with _explained(f"pressing {key}"):
            self._driver.press_keycode(_KEYS[key])

    def start(self, package: str, activity: str) -> None:
        """Start an app."""
        if activity:
            component = f"{package}/{activity}"
            self._mobile(f"starting {package}", "startActivity", component=component, wait=True)
        else:
            self._mobile(f"starting {package}", "activateApp", appId=package)

    def open_link(self, url: str, package: str) -> None:
        """Open a link."""
        self._mobile(f"opening {url}", "deepLink", url=url, **({"package": package} if package else {}))

    def stop(self, package: str) -> None:
        """End an app."""
        self._mobile(f"ending {package}", "terminateApp", appId=package)

    def clear(self, package: str) -> None:
        """Forget what an app has stored."""
        self._mobile(f"clearing {package}", "clearApp", appId=package)

    def _mobile(self, what: str, command: str, **arguments: object) -> None:
        with _explained(what):
            self._driver.execute_script(f"mobile: {command}", arguments)


def capabilities(phone: AppiumPhone) -> dict[str, object]:
    """What is asked of Appium and its driver."""
    prepared = {} if phone.install else {"appium:skipServerInstallation": True, "appium:skipDeviceInitialization": True}
    return {
        "platformName": "Android",
        "appium:automationName": "UiAutomator2",
        "appium:udid": phone.serial,
        "appium:adbPort": phone.adb_port,
        # The adb server is others', too.
        "appium:suppressKillServer": True,
        # The driver would look for a free one itself; two sessions could find the same.
        "appium:systemPort": free_port(),
        "appium:autoLaunch": False,
        "appium:noReset": True,
        "appium:skipUnlock": True,
        "appium:skipLogcatCapture": True,
        # On phones where shell must not change it; what it is for, hidden APIs, is not used.
        "appium:ignoreHiddenApiPolicyError": True,
        "appium:disableWindowAnimation": True,
        "appium:newCommandTimeout": 600,
        **prepared,
    }


@contextlib.contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        text = (error.msg if isinstance(error, WebDriverException) else str(error)) or type(error).__name__
        raise AutomationError(f"{what}: {text.strip().splitlines()[0][:300]}") from error


@dataclass(frozen=True)
class AppiumAndroidFactory:
    """Opens the apps of one phone.

    Attributes:
        phone: where it is.
        settings: of each session.
    """

    phone: AppiumPhone
    settings: AndroidSettings

    def __call__(self) -> contextlib.AbstractContextManager[AndroidUi]:
        """The phone's screen, for as long as the context; the apps that were opened end with it.

        Raises:
            StepError: the phone did not do its part.
        """
        return android_session(self.phone.device, lambda: AppiumAutomation(self.phone), self.settings)
