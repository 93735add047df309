"""Implement `BrowserUi` on Firefox by WebDriver BiDi."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mplab.base.browser import Event
from mplab.base.browser.session import Answer, SessionError
from mplab.base.errors import StepError
from mplab.base.polling import wait_until
from mplab.drivers.ui.bidi import BidiSession
from mplab.drivers.ui.console import BIDI_EVENT, ConsoleEntry
from mplab.drivers.ui.console import from_bidi as console_of_bidi
from mplab.drivers.ui.devtools import from_bidi, unfinished
from mplab.drivers.ui.evidence import keep_step
from mplab.drivers.ui.matching import locator, selector_name
from mplab.drivers.ui.protocol import AppState
from mplab.format.selector import Selector

_START_TIMEOUT_S = 60.0
_STEP_TIMEOUT_S = 30.0
_EVIDENCE_TIMEOUT_S = 5.0
_SETTLE_S = 5.0
"""Maximum time that `network_events` waits for the end of running requests, s."""
_POLL_S = 0.05
_EVENTS = (
    "network.beforeRequestSent",
    "network.responseCompleted",
    "network.fetchError",
    "browsingContext.load",
    BIDI_EVENT,
)
_BOX = "e => { const b = e.getClientRects(); return b.length > 0 && getComputedStyle(e).visibility !== 'hidden'; }"


class FirefoxUi:
    """`BrowserUi` for one session of Firefox.

    Args:
        session: the BiDi session.
        profile: profile folder of the browser.
        alive: function that returns True while the browser runs.
        size: width and height of the page, CSS pixels.
        screenshots: folder for ``step-NN.png`` and ``step-NN.html`` of a failed step, or None.
    """

    def __init__(
        self,
        session: BidiSession,
        *,
        profile: Path,
        alive: Callable[[], bool],
        size: tuple[int, int],
        screenshots: Path | None,
    ) -> None:
        self._session = session
        self._profile = profile
        self._alive = alive
        self._screenshots = screenshots
        self._step_number = 0
        self._events: list[Event] = []
        self._logged: list[ConsoleEntry] = []
        trust = {"alwaysMatch": {"acceptInsecureCerts": False}}
        session.command("session.new", timeout_s=_START_TIMEOUT_S, capabilities=trust)
        session.command("session.subscribe", events=list(_EVENTS))
        self._context = session.command("browsingContext.getTree")["contexts"][0]["context"]
        width, height = size
        viewport = {"width": width, "height": height}
        session.command("browsingContext.setViewport", context=self._context, viewport=viewport)

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL and wait for its load event."""
        with self._step(f"opening {target}"):
            self._command("browsingContext.navigate", timeout_s=timeout_s, url=target, wait="complete")

    def tap(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Click an element as soon as it exists and is visible."""
        with self._step(f"tapping {selector_name(selector)}"):
            element = self._find(selector, timeout_s, visible=True)
            self._call("e => e.scrollIntoView({block: 'center'})", element)
            move = {"type": "pointerMove", "x": 0, "y": 0, "origin": {"type": "element", "element": element}}
            actions = [move, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
            self._act({"type": "pointer", "id": "finger", "actions": actions})

    def type(self, selector: Selector, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None:
        """Type text into an element. The text is never logged, so `secret` has no effect."""
        with self._step(f"typing into {selector_name(selector)}"):
            self._call("e => e.focus()", self._find(selector, timeout_s, visible=False))
            keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
            self._act({"type": "key", "id": "keyboard", "actions": keys})

    def swipe(self, x_from: int, y_from: int, x_to: int, y_to: int, *, duration_s: float = 0.3) -> None:
        """Swipe from one point of the page to another (CSS pixels)."""
        with self._step(f"swiping from {x_from},{y_from} to {x_to},{y_to}"):
            actions = [
                {"type": "pointerMove", "x": x_from, "y": y_from},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerMove", "x": x_to, "y": y_to, "duration": round(duration_s * 1000)},
                {"type": "pointerUp", "button": 0},
            ]
            touch = {"pointerType": "touch"}
            self._act({"type": "pointer", "id": "touch", "parameters": touch, "actions": actions})

    def wait(self, selector: Selector, *, timeout_s: float = 10.0) -> None:
        """Wait until an element exists."""
        with self._step(f"waiting for {selector_name(selector)}"):
            self._find(selector, timeout_s, visible=False)

    def read(self, selector: Selector, *, timeout_s: float = 10.0) -> str:
        """Return the visible text of an element."""
        with self._step(f"reading {selector_name(selector)}"):
            return str(self._call("e => e.innerText", self._find(selector, timeout_s, visible=False)))

    def back(self) -> None:
        """Go back one page in the browser's history."""
        with self._step("going back"):
            self._command("browsingContext.traverseHistory", delta=-1)

    def screenshot(self, path: Path) -> None:
        """Save the visible part of the page as PNG file `path`."""
        with self._step("taking a screenshot"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._png(_STEP_TIMEOUT_S))

    def hierarchy(self) -> str:
        """Return the HTML source of the page."""
        with self._step("reading the page source"):
            return str(self._call("() => document.documentElement.outerHTML"))

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run `script`, the body of a JavaScript function, in the page; return its value. A promise is awaited."""
        with self._step("running a script in the page"):
            return self._call(f"() => {{ {script} }}")

    def network_events(self) -> Sequence[Event]:
        """Return the DevTools events that arrived since the last call, translated from BiDi events.

        Before that, wait up to 5 s until all requests have ended.
        """
        with self._step("reading the events of the network"):
            wait_until(self._settled, _SETTLE_S, interval_s=_POLL_S)
        taken, self._events = self._events, []
        return from_bidi(taken, context=self._context)

    def _settled(self) -> bool:
        self._take_events()
        return not unfinished(self._events)

    def console(self) -> list[ConsoleEntry]:
        """Return the console entries that arrived since the last call, even if the browser has ended."""
        with contextlib.suppress(SessionError):
            self._take_events()
        self._sort_events()
        taken, self._logged = self._logged, []
        return taken

    def keep_evidence(self, path: Path) -> bool:
        """Save a screenshot of the page as `path`, and its HTML source next to it; return True on success."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self._png(_EVIDENCE_TIMEOUT_S))
            source = self._call("() => document.documentElement.outerHTML", timeout_s=_EVIDENCE_TIMEOUT_S)
            path.with_suffix(".html").write_text(str(source))
        except (SessionError, OSError):
            return False
        return True

    def state(self) -> AppState:
        """Return the browser's stored state: cookies as reported by BiDi, all else from the files of the profile."""
        with self._step("reading the browser's stored state"):
            cookies = self._session.command("storage.getCookies")["cookies"]
        origins = [path for path in self._profile.glob("storage/default/*") if path.name.startswith("http")]
        workers = self._profile / "serviceworker.txt"
        return AppState(
            cookies=len(cookies),
            cached_objects=sum(b":http" in _bytes(path) for path in self._profile.glob("cache2/entries/*")),
            service_workers=workers.read_text(errors="replace").count("http") if workers.exists() else 0,
            storage_origins=len(origins),
            storage_bytes=sum(
                path.stat().st_size for origin in origins for path in origin.rglob("*") if path.is_file()
            ),
        )

    @contextlib.contextmanager
    def _step(self, action: str) -> Iterator[None]:
        self._step_number += 1
        try:
            yield
        except SessionError as error:
            self._fail(action, error)

    def _fail(self, action: str, error: SessionError) -> NoReturn:
        if not self._alive():
            raise StepError(f"browser: {action}: the browser has ended") from error
        remark = keep_step(self, self._screenshots, self._step_number)
        raise StepError(f"browser: {action}: {error}{remark}") from error

    def _take_events(self) -> None:
        """Receive and sort all events that the browser has sent. Raises SessionError when it does not answer."""
        self._session.command("session.status")
        self._sort_events()

    def _sort_events(self) -> None:
        """Move received events to `_logged` (console entries) and `_events` (all others)."""
        for event in self._session.events():
            if event["method"] == BIDI_EVENT:
                self._logged += console_of_bidi([event])
            else:
                self._events.append(event)

    def _png(self, timeout_s: float) -> bytes:
        answer = self._command("browsingContext.captureScreenshot", timeout_s=timeout_s)
        return base64.b64decode(answer["data"])

    def _find(self, selector: Selector, timeout_s: float, *, visible: bool) -> Mapping[str, str]:
        elements: list[Mapping[str, str]] = []

        def first() -> Mapping[str, str] | None:
            nodes = self._command("browsingContext.locateNodes", locator=_bidi_locator(selector))["nodes"]
            elements[:] = [{"sharedId": node["sharedId"]} for node in nodes]
            return next((element for element in elements if not visible or self._call(_BOX, element)), None)

        if element := wait_until(first, timeout_s, interval_s=_POLL_S):
            return element
        state = "there, but not visible" if elements else "not there"
        raise SessionError(f"{state} after {timeout_s:g} s")

    def _call(self, function: str, *arguments: Mapping[str, str], timeout_s: float = _STEP_TIMEOUT_S) -> Any:  # noqa: ANN401
        declaration = f"async (...given) => JSON.stringify(await ({function})(...given)) ?? 'null'"
        answer = self._session.command(
            "script.callFunction",
            timeout_s=timeout_s,
            functionDeclaration=declaration,
            arguments=list(arguments),
            awaitPromise=True,
            target={"context": self._context},
        )
        if answer["type"] != "success":
            raise SessionError(str(answer["exceptionDetails"]["text"]))
        return json.loads(answer["result"]["value"])

    def _act(self, source: Mapping[str, object]) -> None:
        self._command("input.performActions", actions=[source])

    def _command(self, method: str, *, timeout_s: float = _STEP_TIMEOUT_S, **parameters: object) -> Answer:
        return self._session.command(method, timeout_s=timeout_s, context=self._context, **parameters)


def _bidi_locator(selector: Selector) -> dict[str, str]:
    strategy, value = locator(selector)
    return {"type": strategy.removesuffix(" selector"), "value": value}


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the browser has just removed the file
        return b""
