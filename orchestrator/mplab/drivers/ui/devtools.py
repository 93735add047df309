"""Translate WebDriver BiDi events into Chromium's DevTools events, and DevTools events into HAR (HTTP Archive).

Scenarios read only DevTools events.
"""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mplab.base.browser import Event
from mplab.base.errors import StepError
from mplab.base.programs import APPIUM_DIR


def from_bidi(events: Sequence[Event], *, context: str) -> list[Event]:
    """Return DevTools events (``{"method": …, "params": …}``) of one page and its frames; times in Unix seconds.

    ``dataLength`` is the size of the whole body; ``encodedDataLength`` includes headers. ``connectionReused`` is false
    for the request that opened a connection. A request that was answered from the cache is left out, as in DevTools, if
    `events` also has a network answer for the same URL.

    Args:
        events: events of WebDriver BiDi.
        context: BiDi id of the page's browsing context.
    """
    again = _answered_again(events)
    return [
        {"method": method, "params": params}
        for event in events
        if _is_of_page(event["params"], context) and ("request" not in event["params"] or _request(event) not in again)
        for method, params in _translated(event)
    ]


def _is_of_page(params: Event, context: str) -> bool:
    """Return True when an event with these parameters belongs to the page `context` or to one of its frames.

    Requests of frames have contexts of their own, and are accepted; the browser's own requests have no context.
    """
    return params.get("context") is not None if "request" in params else params.get("context") == context


def _answered_again(events: Sequence[Event]) -> set[str]:
    """Return ids of requests answered from the cache although `events` has a network answer for the same URL."""
    answers = [event for event in events if event["method"] == "network.responseCompleted"]
    came = {event["params"]["response"]["url"] for event in answers if not event["params"]["response"]["fromCache"]}
    cached = [event for event in answers if event["params"]["response"]["fromCache"]]
    return {_request(event) for event in cached if event["params"]["response"]["url"] in came}


def unfinished(events: Sequence[Event]) -> int:
    """Return the number of requests in `events` that have started but not ended."""
    begun = {_request(event) for event in events if event["method"] == "network.beforeRequestSent"}
    ended = {_request(e) for e in events if e["method"] in {"network.responseCompleted", "network.fetchError"}}
    return len(begun - ended)


def _translated(event: Event) -> Iterator[tuple[str, Event]]:
    params = event["params"]
    if event["method"] == "browsingContext.load":
        yield "Page.loadEventFired", {"timestamp": params["timestamp"] / 1000}
        return
    request = {"requestId": _request(event)}
    timings = params["request"]["timings"]
    if event["method"] == "network.beforeRequestSent":
        sent = {"url": params["request"]["url"], "method": params["request"]["method"]}
        yield "Network.requestWillBeSent", {**request, "request": sent, "timestamp": params["timestamp"] / 1000}
    elif event["method"] == "network.responseCompleted":
        response = params["response"]
        facts = {
            "url": response["url"],
            "status": response["status"],
            "protocol": response["protocol"],
            "fromDiskCache": response["fromCache"],
            "connectionReused": not timings["connectStart"],
        }
        yield "Network.responseReceived", {**request, "response": facts}
        yield "Network.dataReceived", {**request, "dataLength": response["bodySize"]}
        ended = timings["responseEnd"] or params["timestamp"]
        yield (
            "Network.loadingFinished",
            {**request, "encodedDataLength": response["bytesReceived"], "timestamp": ended / 1000},
        )
    elif event["method"] == "network.fetchError":
        yield "Network.loadingFailed", {**request, "errorText": params.get("errorText", "")}


def _request(event: Event) -> str:
    return str(event["params"]["request"]["request"])


_TIMEOUT_S = 60.0


def har_from_events(events: Sequence[Event], *, node: Path, appium_dir: Path = APPIUM_DIR) -> dict[str, Any]:
    """Convert DevTools events to HAR (HTTP Archive) and return it as JSON object.

    Args:
        events: DevTools events of the domains Network and Page.
        node: the Node.js program.
        appium_dir: folder with ``har.mjs`` and ``node_modules``.

    Raises:
        StepError: the converter failed.
    """
    argv = [str(node), str(appium_dir / "har.mjs")]
    try:
        result = subprocess.run(
            argv, input=json.dumps(events), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StepError(f"har: {' '.join(argv)}: {error}") from error
    if result.returncode != 0:
        raise StepError(f"har: {' '.join(argv)} failed ({result.returncode}): {result.stderr.strip()[-300:]}")
    har: dict[str, Any] = json.loads(result.stdout)
    return har
