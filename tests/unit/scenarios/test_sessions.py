"""Each cell opens its own session of a scenario, closes what it opened, and shares nothing with other cells."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from mplab.base.errors import StepError
from mplab.base.machine import CommandResult
from mplab.base.plugins import SCENARIOS
from mplab.lab.catalog import load_android_scenario, load_scenario, scenario_names
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from mplab.userfiles.experiments.app import load_android_apps

WITH_UI = [name for name in scenario_names() if load_scenario(name).needs_ui]
ANDROID = [name for name in scenario_names() if load_android_scenario(name) is not load_scenario(name)]
FACTS = {"phone": "a", "phone_password": "b", "peer": "c", "peer_password": "d", "url": "https://x.lab/"}


class Screen:
    """An app whose elements all appear at once."""

    def open(self, target: str, *, timeout_s: float = 60.0) -> None: ...

    def tap(self, selector: object, *, timeout_s: float = 10.0) -> None: ...

    def type(self, selector: object, text: str, *, timeout_s: float = 10.0, secret: bool = False) -> None: ...

    def wait(self, selector: object, *, timeout_s: float = 10.0) -> None: ...

    def evaluate(self, script: str) -> dict[str, Any]:
        return {}


class Opened:
    """Opens apps and records which are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.seen: list[str] = []

    def factory(self, name: str) -> Callable[..., AbstractContextManager[Any]]:
        @contextmanager
        def opened(*_arguments: object, **_options: object) -> Iterator[Any]:
            self.open.append(name)
            self.seen.append(name)
            try:
                yield Screen() if name != "sound" else SimpleNamespace(server="unix:/x")
            finally:
                self.open.remove(name)

        return opened


def speech(folder: Path) -> Mapping[str, str]:
    """Return facts of the service `turn`."""
    (folder / "utterances.json").write_text('[{"voice": "v", "start_s": 0.0, "end_s": 8.0}]')
    (folder / "reference.wav").write_bytes(b"RIFF")
    return {"utterances": str(folder / "utterances.json"), "sent": "s.wav", "reference": str(folder / "reference.wav")}


def context_of(cell: Any, opened: Opened, **more: Any) -> Context:
    facts = {**FACTS, **speech(cell.context.cell_dir), "quiet": "q.wav"}
    context: Context = dataclasses.replace(
        cell.context,
        open_ui=opened.factory("phone"),
        open_peer_ui=opened.factory("peer"),
        open_sound=opened.factory("sound"),
        open_app=opened.factory("app"),
        service=lambda _name: facts,
        **more,
    )
    return context


@pytest.fixture
def cell(make_cell: Callable[..., Any]) -> Any:
    return make_cell(reply=lambda _argv: CommandResult(0, "", ""))


def pushing(cell: Any) -> None:
    cell.context.phone.push = lambda _source, _target: None


@pytest.mark.parametrize("name", WITH_UI)
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_session_has_opened_is_closed(cell: Any, name: str, fails: bool) -> None:
    scenario, opened = load_scenario(name), Opened()
    ending = pytest.raises(StepError, match="in the middle") if fails else nullcontext()
    with ending, scenario.open(context_of(cell, opened), scenario.parameters()) as session:
        assert isinstance(session, Session)
        assert "phone" in opened.open
        if fails:
            raise StepError("in the middle")
    assert opened.seen
    assert opened.open == []


@pytest.mark.parametrize("name", ANDROID)
@pytest.mark.parametrize("fails", [False, True])
def test_an_app_of_android_ends_with_its_session(cell: Any, name: str, fails: bool) -> None:
    scenario, opened = load_android_scenario(name), Opened()
    apps = load_android_apps(SCENARIOS[name].folder()).values()
    app = dataclasses.replace(next(iter(apps)), devtools="")
    pushing(cell)
    ending = pytest.raises(StepError, match="in the middle") if fails else nullcontext()
    with ending, scenario.open(context_of(cell, opened, android=app), scenario.parameters()):
        assert "app" in opened.open
        if fails:
            raise StepError("in the middle")
    assert opened.open == []


@pytest.mark.parametrize("name", ANDROID)
def test_an_app_of_android_has_to_be_chosen(cell: Any, name: str) -> None:
    scenario = load_android_scenario(name)
    with (
        pytest.raises(StepError, match=f"{name}: the lab has not chosen an app for it"),
        scenario.open(cell.context, scenario.parameters()),
    ):
        pytest.fail("it was opened")


@pytest.mark.parametrize("name", WITH_UI)
def test_cells_share_nothing(cell: Any, name: str) -> None:
    scenario, opened = load_scenario(name), Opened()
    context, parameters = context_of(cell, opened), scenario.parameters()
    before = deepcopy(vars(scenario))
    with scenario.open(context, parameters) as first:
        alone = list(opened.open)
        with scenario.open(context, parameters) as second:
            assert first is not second
            assert vars(scenario) == before
        assert opened.open == alone


class Plain(Scenario[Parameters]):
    """A scenario with only the required methods."""

    name = title = "plain"
    parameters = Parameters

    def time_limit_s(self, parameters: BaseModel) -> float:
        return 1.0

    def estimate_s(self, parameters: BaseModel) -> float:
        return 1.0

    def open(self, context: Context, parameters: Parameters) -> AbstractContextManager[Session[Parameters]]:
        raise NotImplementedError


def test_everything_optional_has_a_default(cell: Any) -> None:
    plain = Plain()
    defaults = (plain.browser, plain.programs, plain.socks, plain.cpus, plain.services, plain.needs_ui, plain.checks)
    assert defaults == ("chromium", (), False, 0.5, (), False, False)
    plain.check(cell.context, Parameters())


def test_what_a_scenario_must_say_is_demanded() -> None:
    class Nothing(Scenario[Parameters]):
        name = "nothing"

    with pytest.raises(TypeError, match="abstract"):
        Nothing()  # type: ignore[abstract]
