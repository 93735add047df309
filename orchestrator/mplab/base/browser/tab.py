"""Control a page through the browser's DevTools socket: load the page, run scripts in it, read its network events.

The Chrome DevTools Protocol has the HTTP endpoints ``/json/version`` and ``/json/list``, and one websocket per page.
"""

import base64
import contextlib
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from mplab.base.browser import Event
from mplab.base.browser.session import CONNECT_TIMEOUT_S, Answer, BrowserSession, SessionError, websocket_to
from mplab.base.errors import StepError
from mplab.base.polling import wait_until

_HOST = "localhost"
"""Host name in requests; browsers refuse other names, as protection against DNS rebinding."""
_STEP_TIMEOUT_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True)
class DevTools:
    """Access to the DevTools socket of a browser.

    Attributes:
        device: name of the browser's phone in messages.
        connect: returns a new connection to the DevTools socket; raises OSError on failure.
    """

    device: str
    connect: Callable[[], socket.socket]

    def version(self) -> Mapping[str, str]:
        """Return the browser's version facts: ``Browser``, ``Protocol-Version``, ``Android-Package``, ….

        Raises:
            StepError: the browser does not answer.
        """
        facts: dict[str, str] = self._get("/json/version")
        return facts

    def pages(self) -> Sequence[Answer]:
        """Return the open pages, the most recently used one first. Raises StepError: the browser does not answer."""
        return [target for target in self._get("/json/list") if target.get("type") == "page"]

    @contextlib.contextmanager
    def tab(self, *, timeout_s: float) -> Iterator["Tab"]:
        """Yield the most recently used page for the duration of the context; wait until there is a page.

        Raises:
            StepError: no page exists within `timeout_s`, or another program debugs the page.
        """
        if not (pages := wait_until(self.pages, timeout_s, interval_s=_POLL_S)):
            raise StepError(f"{self.device}: DevTools: the browser has no page after {timeout_s:g} s")
        address = pages[0].get("webSocketDebuggerUrl")
        if not address:
            raise StepError(f"{self.device}: DevTools: somebody else debugs the page: close what does")
        try:
            session = BrowserSession(websocket_to(f"ws://{_HOST}{urlsplit(address).path}", self.connect()))
        except (OSError, SessionError) as error:
            raise StepError(f"{self.device}: DevTools: {error}") from error
        with session:
            yield Tab(self.device, session)

    def _get(self, path: str) -> Any:  # noqa: ANN401 - whatever JSON is there
        connection = http.client.HTTPConnection(_HOST)
        try:
            connection.sock = self.connect()
            connection.sock.settimeout(CONNECT_TIMEOUT_S)
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != http.client.OK:
                raise StepError(f"{self.device}: DevTools: {path}: HTTP status {answer.status}")
            return json.loads(text)
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise StepError(f"{self.device}: DevTools do not answer: {path}: {reason}") from error
        finally:
            connection.close()


class Tab:
    """One page of a browser, controlled by DevTools: load pages, run scripts, read network events.

    Every method raises StepError when the browser does not respond as expected.

    Args:
        device: name of the browser's phone in messages.
        session: DevTools session with the page.
    """

    def __init__(self, device: str, session: BrowserSession) -> None:
        self._device = device
        self._session = session
        with self._step("beginning"):
            for method in ("Page.enable", "Network.enable", "Page.bringToFront"):
                session.command(method)
            session.command("Page.setLifecycleEventsEnabled", enabled=True)

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        """Open a URL and wait for its load event. Raises StepError when the page does not load within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        with self._step(f"opening {target}"):
            began = self._session.command("Page.navigate", timeout_s=timeout_s, url=target)
            if problem := began.get("errorText"):
                raise SessionError(problem)
            loader = began.get("loaderId")
            if loader is not None:  # otherwise the URL was a jump within the page
                self._session.wait(
                    lambda event: _loaded(event, began["frameId"], loader),
                    timeout_s=deadline - time.monotonic(),
                    late=f"no load event within {timeout_s:g} s",
                )

    def evaluate(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the page returns
        """Run `script`, the body of a JavaScript function, in the page. Return its value; a promise is awaited.

        Raises:
            StepError: the script threw an exception, or the page gave no answer.
        """
        with self._step("running a script in the page"):
            expression = f"(() => {{ {script} }})()"
            answer = self._session.command(
                "Runtime.evaluate",
                timeout_s=_STEP_TIMEOUT_S,
                expression=expression,
                awaitPromise=True,
                returnByValue=True,
            )
            if thrown := answer.get("exceptionDetails"):
                raise SessionError(
                    str(thrown.get("exception", {}).get("description") or thrown["text"]).splitlines()[0]
                )
            return answer["result"].get("value")

    def pdf(self, *, header: str, footer: str, timeout_s: float) -> bytes:
        """Return the page as a tagged PDF with an outline of its headings, in the paper size of its style sheet.

        Args:
            header: HTML at the top of each page, with its own style; an element of the class ``pageNumber`` or
                ``totalPages`` gets the number.
            footer: HTML at the bottom of each page.
            timeout_s: maximum time, seconds.

        Raises:
            StepError: the page was not printed in time.
        """
        with self._step("printing"):
            answer = self._session.command(
                "Page.printToPDF",
                timeout_s=timeout_s,
                displayHeaderFooter=True,
                headerTemplate=header,
                footerTemplate=footer,
                printBackground=True,
                preferCSSPageSize=True,
                generateTaggedPDF=True,
                generateDocumentOutline=True,
            )
            return base64.b64decode(answer["data"])

    def network_events(self) -> Sequence[Event]:
        """Return the DevTools events of the domains Network and Page that arrived since the last call."""
        with self._step("reading the events of the network"):
            self._session.command("Page.getFrameTree", timeout_s=_STEP_TIMEOUT_S)  # earlier events arrive before it
        return self._session.events()

    @contextlib.contextmanager
    def _step(self, what: str) -> Iterator[None]:
        try:
            yield
        except SessionError as error:
            raise StepError(f"{self._device}: DevTools: {what}: {error}") from error


def _loaded(event: Event, frame: str, loader: str) -> bool:
    about = event["params"]
    return event["method"] == "Page.lifecycleEvent" and (about["frameId"], about["loaderId"], about["name"]) == (
        frame,
        loader,
        "load",
    )
