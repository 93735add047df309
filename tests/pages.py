"""Show mplab's own pages in Chromium and in Firefox: widths, themes, without JavaScript, keyboard, axe-core.

One browser is started for many checks. Pages are opened from ``file://`` or from any other address.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest

from mplab.base.browser.own import own_chromium
from mplab.base.browser.session import BrowserSession, websocket_to
from mplab.base.places import ROOT
from mplab.base.polling import wait_until
from mplab.base.programs import FIREFOX
from mplab.drivers.ui.firefox_factory import write_profile

AXE = ROOT / "tools" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
needs_axe = pytest.mark.skipif(not AXE.is_file() and "CI" not in os.environ, reason="no axe-core: make axe")
"""Mark of tests that call `violations`. In CI they fail without axe-core."""
WIDTHS = (1300, 420)
HEIGHT = 900
KEYS = {"Tab": ("\ue004", 9, ""), "Enter": ("\ue006", 13, "\r")}
"""Name of a key → its WebDriver code, its Windows code, its text."""

_TIMEOUT_S = 60.0
_SERIOUS = ("serious", "critical")
_LISTENING = re.compile(r"WebDriver BiDi listening on ws://127\.0\.0\.1:(\d+)")


class PageBrowser(Protocol):
    """A browser with one page."""

    def show(self, url: str, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Load a page in a window of this width, CSS pixels."""

    def run(self, body: str) -> Any:
        """Run the body of a JavaScript function in the page, and return its value; a promise is awaited."""

    def press(self, key: str) -> None:
        """Press and release one of `KEYS`."""


@dataclass(frozen=True)
class ChromiumPage:
    """Chromium, driven by DevTools."""

    session: BrowserSession

    def show(self, url: str, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Load a page, see `PageBrowser`."""
        command = self.session.command
        command("Page.enable")
        command("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command("Emulation.setEmulatedMedia", features=[theme])
        command("Emulation.setScriptExecutionDisabled", value=not scripts)
        for address in ("about:blank", url):  # a link within the page that is shown would be no load
            self.session.events()
            command("Page.navigate", url=address, timeout_s=_TIMEOUT_S)
            self.session.wait(
                lambda event: event["method"] == "Page.loadEventFired", timeout_s=_TIMEOUT_S, late="no load event"
            )

    def run(self, body: str) -> Any:
        """Run a script, see `PageBrowser`."""
        answer = self.session.command(
            "Runtime.evaluate",
            expression=f"(async () => {{ {body} }})()",
            awaitPromise=True,
            returnByValue=True,
            timeout_s=_TIMEOUT_S,
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, see `PageBrowser`."""
        _, code, text = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            extra: dict[str, Any] = {"text": text} if text and kind == "keyDown" else {}
            self.session.command(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra
            )


@dataclass(frozen=True)
class FirefoxPage:
    """Firefox, driven by WebDriver BiDi; it has one theme from its start to its end."""

    session: BrowserSession
    context: str
    dark: bool

    def show(self, url: str, *, width: int, dark: bool = False, scripts: bool = True) -> None:
        """Load a page, see `PageBrowser`."""
        assert dark == self.dark
        assert scripts, "Chromium checks pages without JavaScript"
        viewport = {"width": width, "height": HEIGHT}
        self.session.command("browsingContext.setViewport", context=self.context, viewport=viewport)
        self.session.command(
            "browsingContext.navigate", context=self.context, url=url, wait="complete", timeout_s=_TIMEOUT_S
        )

    def run(self, body: str) -> Any:
        """Run a script, see `PageBrowser`."""
        answer = self.session.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await (async () => {{ {body} }})() ?? null))()",
            target={"context": self.context},
            awaitPromise=True,
            timeout_s=_TIMEOUT_S,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])

    def press(self, key: str) -> None:
        """Press a key, see `PageBrowser`."""
        steps = [{"type": kind, "value": KEYS[key][0]} for kind in ("keyDown", "keyUp")]
        keyboard = {"type": "key", "id": "keyboard", "actions": steps}
        self.session.command("input.performActions", context=self.context, actions=[keyboard])


@contextlib.contextmanager
def chromium_page() -> Iterator[ChromiumPage]:
    """Start Chromium for the duration of the context."""
    with own_chromium() as browser:
        yield ChromiumPage(browser.page(timeout_s=_TIMEOUT_S))


@contextlib.contextmanager
def firefox_page(*, dark: bool = False) -> Iterator[FirefoxPage]:
    """Start Firefox with a light or a dark theme for the duration of the context."""
    with TemporaryDirectory(prefix="mplab-firefox-", ignore_cleanup_errors=True) as folder:
        profile, log = write_profile(Path(folder) / "profile", Path(folder)), Path(folder) / "firefox.log"
        with (profile / "user.js").open("a") as preferences:
            preferences.write(f'user_pref("layout.css.prefers-color-scheme.content-override", {0 if dark else 1});\n')
        environment = {name: value for name, value in os.environ.items() if name not in {"DISPLAY", "WAYLAND_DISPLAY"}}
        argv = [str(FIREFOX.path()), "--headless", "--no-remote", "--profile", str(profile)]
        argv += ["--remote-debugging-port", "0", "about:blank"]
        with log.open("wb") as output:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment | {"HOME": folder},
                start_new_session=True,
            )
        try:
            found = wait_until(
                lambda: process.poll() is None and _LISTENING.search(log.read_text(errors="replace")),
                _TIMEOUT_S,
                interval_s=0.05,
            )
            assert found, log.read_text(errors="replace")
            port = int(found[1])
            plain = socket.create_connection(("127.0.0.1", port), 10)
            with BrowserSession(websocket_to(f"ws://127.0.0.1:{port}/session", plain)) as session:
                session.command("session.new", capabilities={}, timeout_s=_TIMEOUT_S)
                # The first tab of a headless window never gets the focus, so that no key would press a button.
                context = session.command("browsingContext.create", type="tab")["context"]
                session.command("browsingContext.activate", context=context)
                yield FirefoxPage(session, context, dark)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def overflow(browser: PageBrowser) -> list[str]:
    """Return what is wider than the window: the page itself, or elements outside of a box that scrolls."""
    return list(
        browser.run(
            "const width = document.documentElement.clientWidth;"
            "const wide = [...document.querySelectorAll('body *')]"
            ".filter(e => e.getBoundingClientRect().right > width + 1)"
            ".filter(e => !e.closest('.scroll, pre, nav, svg, summary'));"
            "const page = document.documentElement.scrollWidth > width ? ['the page'] : [];"
            "return [...page, ...wide.map(e => e.tagName + ' ' + e.textContent.slice(0, 60))];"
        )
    )


def violations(browser: PageBrowser) -> list[str]:
    """Return the serious and critical violations that axe-core reports: rule, and the first elements."""
    assert AXE.is_file(), "no axe-core: make axe"
    browser.run(AXE.read_text(encoding="utf-8"))
    found: Sequence[dict[str, Any]] = browser.run(
        "const results = await axe.run(document, {resultTypes: ['violations']});"
        "return results.violations.map(v => ({id: v.id, impact: v.impact,"
        " nodes: v.nodes.slice(0, 3).map(n => n.target.join(' ') + ': ' + n.failureSummary)}));"
    )
    return [f"{v['id']}: {'; '.join(v['nodes'])}" for v in found if v["impact"] in _SERIOUS]


def tab_stops(browser: PageBrowser, holds: Callable[[str], bool], most: int = 200) -> str:
    """Press Tab until the focused element's text holds; return the text, or "" after ``most`` stops."""
    for _ in range(most):
        browser.press("Tab")
        text = str(browser.run("return (document.activeElement?.textContent ?? '').trim();"))
        if holds(text):
            return text
    return ""
