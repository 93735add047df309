"""Opens browser sessions: each with a new profile, so that nothing is cached."""

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

from mplab.base.errors import StepError
from mplab.base.ports import free_port
from mplab.base.programs import CHROMEDRIVER, CHROMIUM
from mplab.drivers.ui import browser
from mplab.drivers.ui.browser import PREFERENCES, Wrapper
from mplab.drivers.ui.chromium import FAILURES, ChromiumUi
from mplab.drivers.ui.console import ConsoleLog, kept_console

_SESSION_TIMEOUT_S = 30.0
_QUIT_TIMEOUT_S = 10.0
_ATTEMPTS = 2


@dataclass(frozen=True)
class ChromiumUiFactory:
    """A `BrowserFactory` for the phone's Chromium.

    Attributes:
        server_url: where Appium listens.
        enter: what stands before a command to run it in the phone.
        home: HOME of the browser, with the certificate database.
        directory: folder for profiles; each goes when its session is closed. The phone must see it under the same path.
        screenshots: where failed steps leave screenshot and page source (the cell's ``screenshots``), or None.
        keys: file for the keys of the browsers' TLS connections (readable by its owner alone), or None.
        console: keeps what pages write to the console, or None.
    """

    server_url: str
    enter: Sequence[str]
    home: Path
    directory: Path
    screenshots: Path | None = None
    keys: Path | None = None
    console: ConsoleLog | None = None

    def __call__(
        self, *, switches: Sequence[str] = (), sound: str = ""
    ) -> contextlib.AbstractContextManager[ChromiumUi]:
        """A browser with a new profile, for as long as the context.

        Args:
            switches: further command line switches.
            sound: address of the sound server that it plays to; "": it is muted.

        Raises:
            StepError: no session, after a second attempt.
        """
        return self._session(switches, sound)

    @contextlib.contextmanager
    def _session(self, further: Sequence[str], sound: str) -> Iterator[ChromiumUi]:
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
                # One request, one answer: what the step's time limit says is what it takes.
                init_args_for_pool_manager={"init_args_for_pool_manager": {"retries": False}},
            )
            try:
                driver, profile, port = self._create(folder, wrapper, config, further, muted=not sound)
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
        self, folder: Path, wrapper: Wrapper, config: AppiumClientConfig, further: Sequence[str], *, muted: bool
    ) -> tuple[Remote, Path, int]:
        """A session, its profile, and the port of its ChromeDriver."""
        if not CHROMIUM.version():  # ChromeDriver waits long for one that ends at once
            raise StepError(f"browser: no session: {CHROMIUM.path()} does not run: asked for its version, it says none")
        problem = ""
        for attempt in range(1, _ATTEMPTS + 1):
            profile = folder / f"profile-{attempt}"
            asked = capabilities(wrapper.path, profile, further, muted=muted)
            options = AppiumOptions().load_capabilities(asked)
            config.timeout = _SESSION_TIMEOUT_S
            try:
                driver = Remote(command_executor=self.server_url, options=options, client_config=config)
                return driver, profile, asked["appium:chromedriverPort"]
            except FAILURES as error:
                problem = str(error).strip().splitlines()[0]
                _kill(wrapper)
        raise StepError(f"browser: no session after {_ATTEMPTS} attempts: {problem}")


def capabilities(binary: Path, profile: Path, further: Sequence[str] = (), *, muted: bool = True) -> dict[str, Any]:
    """What is asked of Appium, ChromeDriver and Chromium."""
    return {
        "platformName": "linux",
        "browserName": "chrome",
        "appium:automationName": "Chromium",
        "appium:executable": str(CHROMEDRIVER.path()),
        "appium:autodownloadEnabled": False,
        # ChromeDriver is cleaned up by its port: it must be nobody else's.
        "appium:chromedriverPort": free_port(),
        "appium:newCommandTimeout": 600,
        "goog:chromeOptions": {
            "binary": str(binary),
            "args": [*browser.switches(profile, muted=muted), *further],
            "prefs": PREFERENCES,
            "perfLoggingPrefs": {"enableNetwork": True, "enablePage": True},
        },
        "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
    }


def _kill(wrapper: Wrapper) -> None:
    """End the browser and its children, if it is still there."""
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
    """Remove a profile; a browser's last children may still write for a moment."""
    for _ in range(20):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.05)
