"""The modules of the scenario folders, a phone that answers from a list, and a browser that plays back events."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from mplab.base.errors import InputError
from mplab.base.machine import CommandResult
from mplab.base.plugins import SCENARIOS
from mplab.base.programs import Program
from mplab.scenarios.base import AnyScenario, Context
from mplab.scenarios.base.protocol import Tools
from mplab.userfiles.check import Checker
from mplab.userfiles.yaml import parse_yaml

Reply = Callable[[Sequence[str]], CommandResult]


def _modules(name: str, *parts: str) -> SimpleNamespace:
    return SimpleNamespace(**{part: importlib.import_module(f"{SCENARIOS[name].module}.{part}") for part in parts})


@pytest.fixture
def download() -> SimpleNamespace:
    """The folder ``ui-scenarios/mplab/scenarios/download``."""
    return _modules("download", "scenario", "scores", "curl", "content")


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
    return _modules("call", "scenario", "scores", "page", "packets", "quality", "clock", "speech", "stalls")


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
def problems() -> Callable[[Any, str], list[str]]:
    """What is wrong with a YAML mapping of a scenario's parameters, as a user would read it."""

    def find(scenario: Any, text: str) -> list[str]:
        checker = Checker(parse_yaml(text.encode(), "x.yaml"))
        checker.model(scenario.parameters, checker.document.data)
        try:
            checker.raise_problems()
        except InputError as error:
            return str(error).splitlines()
        return []

    return find


class ScriptedPhone:
    """A phone whose shell answers what a function says."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.commands: list[list[str]] = []

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        self.commands.append(list(argv))
        return self._reply(argv)

    def program(self, program: Program) -> str:
        return f"/bin/{program.name}"


class Cell:
    """A context and what was observed in it."""

    def __init__(
        self,
        folder: Path,
        *,
        phone: Any = None,
        ui: Any = None,
        socks: str = "",
        app_proxy: str = "",
        facts: Mapping[str, Mapping[str, str]] | None = None,
        time_limit_s: float = 60.0,
    ) -> None:
        self.observations: list[dict[str, Any]] = []
        self.opened = 0
        self._ui = ui
        self.context = Context(
            phone=phone,
            open_ui=self._open,
            observe=self._observe,
            rng=Random(1),  # noqa: S311
            cell_dir=folder,
            scratch_dir=folder,
            time_limit_s=time_limit_s,
            tools=Tools(node=Path("/bin/false"), node_modules=folder / "node_modules"),
            socks=socks,
            app_proxy=app_proxy,
            service=(facts or {}).__getitem__,
        )

    def run(self, scenario: AnyScenario, parameters: BaseModel) -> None:
        """The whole life of a scenario in this cell."""
        with scenario.open(self.context, parameters) as session:
            session.run()

    def _open(self, *, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[Any]:
        assert not switches
        assert not sound
        self.opened += 1
        return nullcontext(self._ui)

    def _observe(self, event: str, **fields: Any) -> None:
        self.observations.append({"event": event, **fields})


@pytest.fixture
def make_cell(tmp_path: Path) -> Callable[..., Cell]:
    def make(*, reply: Reply | None = None, **given: Any) -> Cell:
        return Cell(tmp_path, phone=ScriptedPhone(reply) if reply else None, **given)

    return make


def page_events(objects: Mapping[str, int], *, protocol: str = "h2", load_at: float = 9.0) -> list[dict[str, Any]]:
    """DevTools events of a page: URL → body bytes."""
    events: list[dict[str, Any]] = []
    for number, (url, size) in enumerate(objects.items()):
        request = {"requestId": str(number)}
        events += [
            {"method": "Network.requestWillBeSent", "params": {**request, "request": {"url": url}}},
            {
                "method": "Network.responseReceived",
                "params": {**request, "response": {"status": 200, "protocol": protocol}},
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
