"""The modules of the scenario folders, a phone that answers from a list, and a browser that plays back events."""

import importlib
from collections.abc import Callable, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from mplab.base.plugins import SCENARIOS
from mplab.testing.scenarios import ScenarioCell


def _modules(name: str, *parts: str) -> SimpleNamespace:
    return SimpleNamespace(**{part: importlib.import_module(f"{SCENARIOS[name].module}.{part}") for part in parts})


@pytest.fixture
def download() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/download``."""
    return _modules("download", "scenario", "scores", "curl")


@pytest.fixture
def web() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/web``."""
    return _modules("web", "scenario", "scores")


@pytest.fixture
def udp_jitter() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/udp_jitter``."""
    return _modules("udp-jitter", "scenario", "scores")


@pytest.fixture
def call() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/call``."""
    return _modules("call", "scenario", "scores", "page", "quality", "speech", "stalls")


@pytest.fixture
def facebook() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/facebook``."""
    return _modules("facebook", "scenario", "scores")


@pytest.fixture
def dropbox() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/dropbox``."""
    return _modules("dropbox", "scenario", "scores")


@pytest.fixture
def drive() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/drive``."""
    return _modules("drive", "scenario", "scores")


@pytest.fixture
def problems(mplab_problems: Callable[[Any, str], list[str]]) -> Callable[[Any, str], list[str]]:
    return mplab_problems


@pytest.fixture
def make_cell(mplab_cell: Callable[..., ScenarioCell]) -> Callable[..., ScenarioCell]:
    return mplab_cell


def page_events(
    objects: Mapping[str, int],
    *,
    protocol: str = "h2",
    load_at: float = 9.0,
    connections: Mapping[str, int] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """DevTools events of a page: URL → body bytes. `connections`: URL → number of its connection, 7 for the others."""
    events: list[dict[str, Any]] = []
    for number, (url, size) in enumerate(objects.items()):
        request = {"requestId": str(number)}
        events += [
            {"method": "Network.requestWillBeSent", "params": {**request, "request": {"url": url}}},
            {
                "method": "Network.responseReceived",
                "params": {
                    **request,
                    "response": {"status": 200, "protocol": protocol, "connectionId": connections.get(url, 7)},
                },
            },
            {"method": "Network.dataReceived", "params": {**request, "dataLength": size}},
            {
                "method": "Network.loadingFinished",
                "params": {**request, "encodedDataLength": size + 100, "timestamp": 1.0 + number},
            },
        ]
    return [*events, {"method": "Page.loadEventFired", "params": {"timestamp": load_at}}]


@pytest.fixture
def make_events() -> Callable[..., list[dict[str, Any]]]:
    return page_events
