"""Open Chromium sessions, each with a new profile, so that no content is cached."""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from appium.options.common import AppiumOptions
from appium.webdriver import Remote
from appium.webdriver.client_config import AppiumClientConfig
from selenium.webdriver.common.proxy import Proxy, ProxyType

from mplab.base.browser.chromium import PREFERENCES, Wrapper, switches
from mplab.base.errors import StepError
from mplab.base.ports import free_port
from mplab.base.programs import CHROMEDRIVER, CHROMIUM
from mplab.drivers.ui.chromium import FAILURES, ChromiumUi
from mplab.drivers.ui.console import ConsoleLog, kept_console

_SESSION_TIMEOUT_S = 30.0
_QUIT_TIMEOUT_S = 10.0
_ATTEMPTS = 2


@dataclass(frozen=True)
class ChromiumUiFactory:
    """`BrowserFactory` for the phone's Chromium.

    Attributes:
        server_url: URL of the Appium server.
        enter: command prefix that runs the browser in the virtual phone's namespaces.
        home: home folder of the browser, with the database of trusted certificates.
        directory: folder for profiles, which are removed with their sessions. The phone must see the same path.
        screenshots: folder for screenshot and page source of failed steps (the cell's ``screenshots``), or None.
        keys: file for the keys of the browsers' TLS connections (readable only by its owner), or None.
        console: log for the messages that pages write to the console, or None.
    """

    server_url: str
    enter: Sequence[str]
    home: Path
    directory: Path
    screenshots: Path | None = None
    keys: Path | None = None
    console: ConsoleLog | None = None

    @contextlib.contextmanager
    def __call__(self, *, switches: Sequence[str] = (), sound: str = "") -> Iterator[ChromiumUi]:
        """Yield a browser with a new profile for the duration of a context.

        Args:
            switches: additional command line switches.
            sound: address of the sound server to which the browser plays; "": muted.

        Raises:
            StepError: the session did not start in two attempts.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="browser-", dir=self.directory))
        try:
            if self.keys is not None:
                self.keys.parent.mkdir(parents=True, exist_ok=True)
                self.keys.touch(mode=0o600)
            wrapper = Wrapper.write(folder, enter=self.enter, home=self.home, keys=self.keys, sound=sound)
            config = AppiumClientConfig(
                remote_server_addr=self.server_url,
                proxy=Proxy(raw={"proxyType": ProxyType.DIRECT}),
                # No retries: a request must not take longer than the time limit of its step.
                init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": False}},
            )
            try:
                driver, profile, port = self._create(folder, wrapper, config, switches, muted=not sound)
                ui = ChromiumUi(
                    driver,
                    config=config,
                    wrapper=wrapper,
                    profile=profile,
                    screenshots=self.screenshots,
                    driver_port=port,
                )
                try:
                    with kept_console(self.console, ui.console):
                        yield ui
                finally:
                    config.timeout = _QUIT_TIMEOUT_S
                    with contextlib.suppress(*FAILURES):
                        driver.quit()
            finally:
                _kill(wrapper)
        finally:
            _remove(folder)

    def _create(
        self, folder: Path, wrapper: Wrapper, config: AppiumClientConfig, switches: Sequence[str], *, muted: bool
    ) -> tuple[Remote, Path, int]:
        """Start a session; return its client, the browser's profile folder, and the port of ChromeDriver.

        Raises:
            StepError: Chromium does not run, or no session started in two attempts.
        """
        if not CHROMIUM.version():  # ChromeDriver would wait long for a browser that exits at once
            raise StepError(f"browser: no session: {CHROMIUM.path()} does not run: it prints no version")
        problem = ""
        for attempt in range(1, _ATTEMPTS + 1):
            profile = folder / f"profile-{attempt}"
            requested = capabilities(wrapper.path, profile, switches, muted=muted)
            options = AppiumOptions().load_capabilities(requested)
            config.timeout = _SESSION_TIMEOUT_S
            try:
                driver = Remote(command_executor=self.server_url, options=options, client_config=config)
                return driver, profile, requested["appium:chromedriverPort"]
            except FAILURES as error:
                problem = str(error).strip().splitlines()[0]
                _kill(wrapper)
        raise StepError(f"browser: no session after {_ATTEMPTS} attempts: {problem}")


def capabilities(binary: Path, profile: Path, further: Sequence[str] = (), *, muted: bool = True) -> dict[str, Any]:
    """Return the WebDriver capabilities that request a session of Appium with ChromeDriver and Chromium.

    Args:
        binary: program to start as the browser.
        profile: user data directory.
        further: additional command line switches.
        muted: True: the browser plays no sound.
    """
    return {
        "platformName": "linux",
        "browserName": "chrome",
        "appium:automationName": "Chromium",
        "appium:executable": str(CHROMEDRIVER.path()),
        "appium:autodownloadEnabled": False,
        # Appium cleans up ChromeDriver by its port, so no other process may use that port.
        "appium:chromedriverPort": free_port(),
        "appium:newCommandTimeout": 600,
        "goog:chromeOptions": {
            "binary": str(binary),
            "args": [*switches(profile, muted=muted), *further],
            "prefs": PREFERENCES,
            "perfLoggingPrefs": {"enableNetwork": True, "enablePage": True},
        },
        "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
    }


def _kill(wrapper: Wrapper) -> None:
    """Kill the browser that `wrapper` started, and its children, if they still run."""
    pid = wrapper.browser_pid()
    if pid is None:
        return
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        children = psutil.Process(pid).children(recursive=True)
        os.kill(pid, signal.SIGKILL)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def _remove(folder: Path) -> None:
    """Remove the folder of a session; retry, because the browser's last children may still write."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)
