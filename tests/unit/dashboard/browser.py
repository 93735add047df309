"""Start Chromium and show pages in it."""

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from mplab.base.browser.chromium import BY_PORT, PORT_FILE, switches
from mplab.base.browser.session import BrowserSession
from mplab.base.browser.tab import DevTools
from mplab.base.polling import wait_until
from mplab.base.programs import CHROMIUM

_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class ChromiumPage:
    """The page of a browser, driven by DevTools."""

    session: BrowserSession

    def show(self, url: str, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Load a page in a window of this width, CSS pixels."""
        command = self.session.command
        command("Page.enable")
        command("Log.enable")
        command("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command("Emulation.setEmulatedMedia", features=[theme])
        command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.session.events()
        command("Page.navigate", url=url, timeout_s=_TIMEOUT_S)
        self.session.wait(
            lambda e: e["method"] == "Page.loadEventFired", timeout_s=_TIMEOUT_S, late=f"no load of {url}"
        )

    def run(self, body: str) -> Any:
        """Run the body of a JavaScript function in the page, and return its value; a promise is awaited."""
        answer = self.session.command(
            "Runtime.evaluate",
            expression=f"(async () => {{ {body} }})()",
            awaitPromise=True,
            returnByValue=True,
            timeout_s=_TIMEOUT_S,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def errors(self) -> list[str]:
        """Return the errors that the browser has logged since the page was loaded, such as refused scripts."""
        self.run("return 0")
        entries = [e["params"]["entry"] for e in self.session.events() if e["method"] == "Log.entryAdded"]
        return [entry["text"] for entry in entries if entry["level"] == "error"]


@contextmanager
def chromium_page() -> Iterator[ChromiumPage]:
    """Start Chromium for the duration of the context."""
    with TemporaryDirectory(prefix="mplab-chromium-", ignore_cleanup_errors=True) as folder:
        port_file = Path(folder) / PORT_FILE
        argv = [str(CHROMIUM.path()), *switches(Path(folder), driven=BY_PORT)]
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            assert wait_until(lambda: port_file.exists() and "\n" in port_file.read_text(), _TIMEOUT_S, interval_s=0.05)
            port = int(port_file.read_text().split()[0])
            devtools = DevTools("Chromium", lambda: socket.create_connection(("127.0.0.1", port), 10))
            (page, *_) = wait_until(devtools.pages, _TIMEOUT_S, interval_s=0.05)
            address = f"ws://localhost{urlsplit(page['webSocketDebuggerUrl']).path}"
            with BrowserSession(address, devtools.connect()) as session:
                yield ChromiumPage(session)
        finally:
            process.kill()
            process.wait()
