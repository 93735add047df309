"""Find the objects that a page has loaded, from DevTools events and timings, and check that the page is complete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict
from urllib.parse import urlsplit

from mplab.base.errors import StepError
from mplab.drivers.ui import Event

_NAMED = 3
"""Largest number of objects that an error message names."""

PROBE_SCRIPT = """
const listing = document.getElementById('mplab-objects');
const navigation = () => performance.getEntriesByType('navigation')[0].toJSON();
const loaded = new Promise(resolve => {
  const until = performance.now() + 20000;
  const look = () => navigation().loadEventStart || performance.now() > until ? resolve() : setTimeout(look, 20);
  look();
});
const last = type => new Promise(resolve => {
  const timer = setTimeout(() => resolve(null), 200);
  new PerformanceObserver(list => {
    clearTimeout(timer);
    resolve(list.getEntries().pop().startTime);
  }).observe({type: type, buffered: true});
});
return loaded.then(() => last('largest-contentful-paint')).then(largest => ({
  navigation: navigation(),
  first_contentful_paint: (performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime ?? null,
  largest_contentful_paint: largest,
  listed: listing && JSON.parse(listing.textContent),
}));
"""
"""Script that runs in the page. It waits for the load event itself, because Firefox reports the event too early for
pages whose scripts delay it with an open frame. ``listed`` is the page's own list: host label → path → bytes."""


class Timings(TypedDict):
    """Result of `PROBE_SCRIPT`; times in milliseconds since navigation start."""

    navigation: Mapping[str, float]
    """Values of PerformanceNavigationTiming (Navigation Timing level 2)."""
    first_contentful_paint: float | None
    largest_contentful_paint: float | None
    listed: Mapping[str, Mapping[str, int]] | None
    """Host label → path → bytes; None: the page has no such list."""


@dataclass(frozen=True)
class LoadedObject:
    """One object that a page has requested over HTTP.

    Attributes:
        body_bytes: size of the decoded body.
        transferred_bytes: size of the response's headers and body on the network.
        finished: DevTools time at which the object was complete, s; None: it was not complete.
    """

    url: str
    status: int
    protocol: str
    body_bytes: int
    transferred_bytes: int
    finished: float | None


def loaded_objects(events: Sequence[Event]) -> list[LoadedObject]:
    """Return the objects that DevTools events show as requested over HTTP, in the order of their requests."""
    objects: dict[str, LoadedObject] = {}
    for event in events:
        parameters = event["params"]
        request = parameters.get("requestId")
        if event["method"] == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url.startswith(("http://", "https://")):
                objects[request] = LoadedObject(url, 0, "", 0, 0, None)
        elif request in objects:
            objects[request] = _updated(objects[request], event["method"], parameters)
    return list(objects.values())


def _updated(item: LoadedObject, method: str, parameters: Event) -> LoadedObject:
    if method == "Network.responseReceived":
        response = parameters["response"]
        return replace(item, status=int(response["status"]), protocol=str(response.get("protocol", "")))
    if method == "Network.dataReceived":
        return replace(item, body_bytes=item.body_bytes + int(parameters["dataLength"]))
    if method == "Network.loadingFinished":
        transferred = int(parameters["encodedDataLength"])
        return replace(item, transferred_bytes=transferred, finished=float(parameters["timestamp"]))
    return item


def load_event_time(events: Sequence[Event]) -> float | None:
    """Return the DevTools time of the page's last load event, s; None if there is no load event."""
    times = [event["params"]["timestamp"] for event in events if event["method"] == "Page.loadEventFired"]
    return float(times[-1]) if times else None


def check_complete(page: str, listed: Mapping[str, Mapping[str, int]] | None, objects: Sequence[LoadedObject]) -> None:
    """Raise StepError unless the loaded objects are exactly those that the page lists, and each is complete.

    Args:
        page: name of the page, for the error message.
        listed: the page's list of its objects: first label of the host name → path → length of the object, bytes;
            None: the page has no list.
        objects: the objects that were loaded.
    """
    if listed is None:
        raise StepError(f"{page}: the page has no list of its objects: it is not a page of the lab, or was cut")
    wanted = {(host, path): size for host, paths in listed.items() for path, size in paths.items()}
    sizes = {_host_and_path(item.url): item for item in objects}
    missing = [name for name in wanted if name not in sizes]
    if missing:
        raise StepError(f"{page}: {len(missing)} of {len(wanted)} objects were not loaded: {_names(missing)}")
    more = [name for name in sizes if name not in wanted]
    if more:
        raise StepError(f"{page}: {len(more)} objects were loaded that the page does not list: {_names(more)}")
    cut = [
        name
        for name, size in wanted.items()
        if sizes[name].finished is None or sizes[name].status != 200 or sizes[name].body_bytes != size
    ]
    if cut:
        first = sizes[cut[0]]
        first_text = f"status {first.status}, {first.body_bytes} of {wanted[cut[0]]} bytes"
        raise StepError(f"{page}: {len(cut)} objects are not complete: {_names(cut)} (the first: {first_text})")


def check_protocol(page: str, objects: Sequence[LoadedObject], protocol: str, scheme: str = "https") -> None:
    """Raise StepError unless every object was loaded as requested. The message begins with `page`.

    Args:
        page: name of the page, for the error message.
        objects: the objects that were loaded.
        protocol: ALPN name of the requested HTTP version.
        scheme: scheme of the requested URLs: ``https`` or ``http``.
    """
    upgraded = [item for item in objects if not item.url.startswith(f"{scheme}://")]
    if upgraded:
        names = _names([_host_and_path(item.url) for item in upgraded])
        raise StepError(f"{page}: {len(upgraded)} objects did not come by {scheme}: {names}")
    other = [item for item in objects if item.protocol != protocol]
    if other:
        names = _names([_host_and_path(item.url) for item in other])
        other_protocol = other[0].protocol or "no protocol"
        raise StepError(f"{page}: {len(other)} objects came by {other_protocol}, {protocol} was requested: {names}")


def connection_ids(events: Sequence[Event]) -> frozenset[int]:
    """Return Chromium's numbers of the connections that a page used. Firefox does not number connections: none."""
    return frozenset(response["connectionId"] for response in _responses(events) if response.get("connectionId"))


def connections_of(events: Sequence[Event]) -> int:
    """Return the number of connections that a page used (Chromium) or opened (Firefox)."""
    return len(connection_ids(events)) or sum(not response["connectionReused"] for response in _responses(events))


def _responses(events: Sequence[Event]) -> list[Event]:
    return [event["params"]["response"] for event in events if event["method"] == "Network.responseReceived"]


def check_connections(page: str, connections: int, *, one: bool, kept: int = 0) -> None:
    """Raise StepError if a page used a connection of an earlier load: the browser was not cold.

    Args:
        page: name of the page, for the error message.
        connections: result of `connections_of`. 0: Firefox opened no connection, so it used earlier ones only.
        one: also raise StepError if the page used several connections.
        kept: number of connections of the page that an earlier load in the same browser had used.
    """
    if not connections:
        raise StepError(f"{page}: the page opened no connection: the browser had kept one")
    if kept:
        raise StepError(f"{page}: {kept} of {connections} connections are of an earlier load: the browser kept them")
    if one and connections > 1:
        raise StepError(f"{page}: the page used {connections} connections, one was requested (addresses: one)")


def page_fields(
    *,
    site: str,
    load: int,
    url: str,
    timings: Timings,
    objects: Sequence[LoadedObject],
    connections: int,
    load_event: float | None,
) -> dict[str, object]:
    """Return the fields of an observation ``page``; times are s since navigation start (Navigation Timing 2).

    Raises:
        StepError: the page had no load event.
    """
    navigation = timings["navigation"]
    if not navigation["loadEventStart"]:
        raise StepError(f"{site}: no load event within 20 s after all objects were loaded")
    late = [item for item in objects if load_event is None or item.finished is None or item.finished > load_event]
    return {
        "site": site,
        "load": load,
        "url": url,
        "protocol": objects[0].protocol,
        "page_load_time_s": _seconds(navigation["loadEventStart"]),
        "dom_content_loaded_s": _seconds(navigation["domContentLoadedEventStart"]),
        "time_to_first_byte_s": _seconds(navigation["responseStart"]),
        "dns_s": _seconds(navigation["domainLookupEnd"] - navigation["domainLookupStart"]),
        "connect_s": _seconds(navigation["connectEnd"] - navigation["connectStart"]),
        "first_contentful_paint_s": _seconds(timings["first_contentful_paint"]),
        "largest_contentful_paint_s": _seconds(timings["largest_contentful_paint"]),
        "objects": len(objects),
        "hosts": len({item.url.split("/")[2] for item in objects}),
        "connections": connections,
        "body_bytes": sum(item.body_bytes for item in objects),
        "transferred_bytes": sum(item.transferred_bytes for item in objects),
        "objects_after_load": len(late),
    }


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 6)


def _host_and_path(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return (parts.hostname or "").split(".")[0], parts.path


def _names(names: Sequence[tuple[str, str]]) -> str:
    shown = ", ".join(f"{host}:{path}" for host, path in names[:_NAMED])
    return f"{shown}, …" if len(names) > _NAMED else shown
