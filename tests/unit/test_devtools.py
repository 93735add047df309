"""Translation of WebDriver BiDi's events to DevTools' events."""

from typing import Any

from mplab.drivers.ui.devtools import from_bidi, unfinished
from mplab.scenarios.base.pages import loaded


def event(method: str, request: str, **more: Any) -> dict[str, Any]:
    timings = {"connectStart": more.pop("connect", 0), "responseEnd": more.pop("ended", 0)}
    about = {"request": request, "url": f"https://x.lab/{request}", "method": "GET", "timings": timings}
    return {"method": method, "params": {"context": "c", "timestamp": 2500, "request": about, **more}}


def response(**changes: Any) -> dict[str, Any]:
    facts = {"url": "https://x.lab/1", "status": 200, "protocol": "h2", "fromCache": False}
    return {**facts, "bodySize": 500, "bytesReceived": 620, **changes}


BEGUN = event("network.beforeRequestSent", "1")
ENDED = event("network.responseCompleted", "1", connect=2100.5, ended=2400.0, response=response())
LOAD = {"method": "browsingContext.load", "params": {"context": "c", "timestamp": 3000, "url": "https://x.lab/"}}


def test_a_request_is_told_from_its_begin_to_its_end() -> None:
    events = from_bidi([BEGUN, ENDED, LOAD], context="c")
    assert [item["method"] for item in events] == [
        "Network.requestWillBeSent",
        "Network.responseReceived",
        "Network.dataReceived",
        "Network.loadingFinished",
        "Page.loadEventFired",
    ]
    assert events[1]["params"]["response"]["connectionReused"] is False
    assert events[3]["params"] == {"requestId": "1", "encodedDataLength": 620, "timestamp": 2.4}
    assert events[4]["params"] == {"timestamp": 3.0}


def test_a_connection_is_reused_when_none_was_made() -> None:
    again = event("network.responseCompleted", "1", response=response())
    assert from_bidi([again], context="c")[0]["params"]["response"]["connectionReused"] is True


def test_requests_of_frames_are_the_pages_and_their_load_events_are_not() -> None:
    events = from_bidi([BEGUN, ENDED, LOAD], context="the page")
    assert events == from_bidi([BEGUN, ENDED], context="c")


def test_requests_of_the_browser_itself_are_left_out() -> None:
    own = [{**event, "params": {**event["params"], "context": None}} for event in (BEGUN, ENDED)]
    assert from_bidi([*own, LOAD], context="c") == from_bidi([LOAD], context="c")


def test_what_the_page_has_just_brought_is_not_told_again_but_what_was_kept_before_is() -> None:
    again = event("network.responseCompleted", "2", response=response(fromCache=True, bodySize=0, bytesReceived=0))
    begun = event("network.beforeRequestSent", "2")
    assert from_bidi([BEGUN, ENDED, begun, again, LOAD], context="c") == from_bidi([BEGUN, ENDED, LOAD], context="c")
    events = from_bidi([begun, again], context="c")
    assert events[1]["params"]["response"]["fromDiskCache"] is True


def test_a_request_is_unfinished_until_it_ends_or_fails() -> None:
    assert unfinished([BEGUN]) == 1
    assert unfinished([BEGUN, ENDED]) == 0
    assert unfinished([BEGUN, event("network.fetchError", "1", errorText="NS_ERROR_NET_RESET")]) == 0


def test_the_scenarios_read_them() -> None:
    events = from_bidi([BEGUN, ENDED, LOAD], context="c")
    (item,) = loaded.loaded_objects(events)
    assert (item.status, item.protocol, item.body_bytes, item.transferred_bytes) == (200, "h2", 500, 620)
    assert item.finished == 2.4
    assert loaded.load_event_time(events) == 3.0
