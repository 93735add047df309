"""Implement `BrowserUi` on Chromium by Appium and ChromeDriver."""

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from appium.webdriver import Remote
from appium.webdriver.client_config import AppiumClientConfig
from appium.webdriver.webelement import WebElement
from selenium.common.exceptions import WebDriverException
from urllib3.exceptions import HTTPError

from mplab.base.browser import Event, Json
from mplab.base.browser.chromium import Wrapper
from mplab.base.errors import StepError
from mplab.base.polling import wait_until
from mplab.drivers.ui.console import ConsoleEntry, from_chromium
from mplab.drivers.ui.evidence import keep_step
from mplab.drivers.ui.matching import locator, selector_name
from mplab.drivers.ui.protocol import AppState
from mplab.drivers.ui.state import chromium_state
from mplab.format.selector import Selector

_ANSWER_MARGIN_S = 10.0
"""Extra time to wait for the answer to a request, after the time limit of the step that the browser performs, s."""
_STEP_TIMEOUT_S = 30.0
_EVIDENCE_TIMEOUT_S = 5.0
_POLL_S = 0.05
_SENSITIVE = "X-Appium-Is-Sensitive"
"""Header of requests whose bodies Appium masks in its log."""
_ERROR_PAGE = """
const code = document.querySelector('#error-code');
return location.protocol === 'chrome-error:' ? (code && code.textContent) || document.title : null;
"""
FAILURES = (WebDriverException, HTTPError, OSError)
"""Exceptions that Appium's client raises when browser, ChromeDriver or Appium fail."""


class ChromiumUi:
    """`BrowserUi` for one session of Chromium.

    Args:
        driver: Appium client of the session.
        config: configuration of this client; its ``timeout`` limits each request.
        wrapper: script that started the browser; it knows the browser's process id.
        profile: user data directory of the browser.
        screenshots: folder for ``step-NN.png`` and ``step-NN.html`` of a failed step, or None.
        driver_port: loopback port of ChromeDriver.
    """

    def __init__(
        self,
        driver: Remote,
        *,
        config: AppiumClientConfig,
        wrapper: Wrapper,
        profile: Path,
        screenshots: Path | None,
        driver_port: int,
    ) -> None:
        self._driver = driver
        self._config = config
        self._wrapper = wrapper
        self._profile = profile
        self._screenshots = screenshots
        self._driver_port = driver_port
        self._step_number = 0
        self._page_timeout_s = 0.0

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL and wait for its load event.

        Raises:
            StepError: the page did not load in time, or the browser shows an error page.
        """
        with self._step(f"opening {target}", timeout_s):
            if timeout_s != self._page_timeout_s:
                self._driver.set_page_load_timeout(timeout_s)
                self._page_timeout_s = timeout_s
            self._driver.get(target)
            problem = self._driver.execute_script(_ERROR_PAGE)
            if problem:  # the browser's error page, which ChromeDriver treats like any page
                raise WebDriverException(str(problem))

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Click an element as soon as it exists and is visible."""
        with self._step(f"tapping {selector_name(selector)}", timeout_s):
            self._find(selector, timeout_s, visible=True).click()

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        """Type text into an element; with `secret`, Appium masks the text in its log."""
        with self._step(f"typing into {selector_name(selector)}", timeout_s):
            element = self._find(selector, timeout_s, visible=False)
            with kept_out_of_logs(self._driver) if secret else contextlib.nullcontext():
                element.send_keys(text)

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, *, duration_s: float = 0.3) -> None:
        """Swipe from one point of the page to another (CSS pixels)."""
        with self._step(f"swiping from {x_from},{y_from} to {x_to},{y_to}", duration_s):
            self._driver.swipe(x_from, y_from, x_to, y_to, round(duration_s * 1000))

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element exists."""
        with self._step(f"waiting for {selector_name(selector)}", timeout_s):
            self._find(selector, timeout_s, visible=False)

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        """Return the visible text of an element."""
        with self._step(f"reading {selector_name(selector)}", timeout_s):
            return str(self._find(selector, timeout_s, visible=False).text)

    def back(self) -> None:
        """Go back one page in the browser's history."""
        with self._step("going back", _STEP_TIMEOUT_S):
            self._driver.back()

    def screenshot(self, path: Path) -> None:
        """Save the visible part of the page as PNG file `path`."""
        with self._step("taking a screenshot", _STEP_TIMEOUT_S):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._driver.get_screenshot_as_png())

    def hierarchy(self) -> str:
        """Return the HTML source of the page."""
        with self._step("reading the page source", _STEP_TIMEOUT_S):
            return str(self._driver.page_source)

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run `script`, the body of a JavaScript function, in the page; return its value. A promise is awaited."""
        with self._step("running a script in the page", _STEP_TIMEOUT_S):
            return self._driver.execute_script(script)

    def network_events(self) -> Sequence[Event]:
        """Return the DevTools events of the domains Network and Page that arrived since the last call."""
        with self._step("reading the performance log", _STEP_TIMEOUT_S):
            entries = self._driver.get_log("performance")
        return [json.loads(entry["message"])["message"] for entry in entries]

    def console(self) -> list[ConsoleEntry]:
        """Return the console entries that arrived since the last call. Raises StepError if the browser has ended."""
        self._config.timeout = _EVIDENCE_TIMEOUT_S
        try:
            return from_chromium(self._driver.get_log("browser"))
        except FAILURES as error:
            raise StepError(f"browser: reading the console: {_first_line(error)}") from error

    def keep_evidence(self, path: Path) -> bool:
        """Save a screenshot of the page as `path`, and its HTML source next to it; return True on success."""
        if self.browser_pid is None:
            return False
        self._config.timeout = _EVIDENCE_TIMEOUT_S
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._driver.get_screenshot_as_png())
            path.with_suffix(".html").write_text(self._driver.page_source)
        except FAILURES:
            return False
        return True

    def state(self) -> AppState:
        """Return the browser's stored state: cookies, cached objects, service workers, storage."""
        with self._step("reading the browser's stored state", _STEP_TIMEOUT_S):
            return chromium_state(self._profile, self._devtools)

    def _devtools(self, method: str, parameters: Mapping[str, object]) -> Json:
        # This command of ChromeDriver is missing in Appium's client.
        executor: Any = self._driver.command_executor
        executor.add_command("devtools", "POST", "/session/$sessionId/goog/cdp/execute")
        answer = self._driver.execute("devtools", {"cmd": method, "params": dict(parameters)})
        result: Json = answer["value"]
        return result

    @property
    def browser_pid(self) -> int | None:
        """Process id of the browser, or None when it has ended."""
        return self._wrapper.browser_pid()

    @contextlib.contextmanager
    def _step(self, action: str, timeout_s: float) -> Iterator[None]:
        self._step_number += 1
        self._config.timeout = timeout_s + _ANSWER_MARGIN_S
        try:
            yield
        except FAILURES as error:
            self._fail(action, error)

    def _fail(self, action: str, error: Exception) -> NoReturn:
        if not _listens(self._driver_port):  # checked first, because the browser ends with its driver
            raise StepError(f"browser: {action}: chromedriver has ended") from error
        if self.browser_pid is None:
            raise StepError(f"browser: {action}: the browser has ended") from error
        remark = keep_step(self, self._screenshots, self._step_number)
        raise StepError(f"browser: {action}: {_first_line(error)}{remark}") from error

    def _find(self, selector: Selector, timeout_s: float, *, visible: bool) -> WebElement:
        locators = [locator(alternative) for alternative in selector.alternatives]
        elements: list[WebElement] = []

        def first() -> WebElement | None:
            elements[:] = [element for by, value in locators for element in self._driver.find_elements(by, value)]
            return next((element for element in elements if not visible or element.is_displayed()), None)

        if element := wait_until(first, timeout_s, interval_s=_POLL_S):
            return element
        state = "there, but not visible" if elements else "not there"
        raise WebDriverException(f"{state} after {timeout_s:g} s")


@contextlib.contextmanager
def kept_out_of_logs(driver: Remote) -> Iterator[None]:
    """Mark all requests of the client during the context as sensitive, so that Appium does not log their values."""
    # Appium's client reads additional headers from the class of its connection.
    connection: Any = type(driver.command_executor)
    before = connection.extra_headers
    connection.extra_headers = {**before, _SENSITIVE: "true"}
    try:
        yield
    finally:
        connection.extra_headers = before


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), _EVIDENCE_TIMEOUT_S):
        return True
    return False


def _first_line(error: Exception) -> str:
    text = (error.msg if isinstance(error, WebDriverException) else str(error)) or type(error).__name__
    return text.strip().splitlines()[0]
