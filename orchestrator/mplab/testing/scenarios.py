"""Run a scenario without a lab, in a cell with a scripted phone and a given app; record its observations."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import TypedDict, cast

from pydantic import BaseModel

from mplab.analysis.metric import Observation, Value
from mplab.analysis.scores.plugins import load
from mplab.analysis.scores.scoring import checked_values
from mplab.base.errors import InputError
from mplab.base.machine import CommandResult
from mplab.base.programs import Program
from mplab.drivers.phone import Phone
from mplab.drivers.ui import BrowserUi
from mplab.scenarios.base import AnyScenario, Context
from mplab.scenarios.base.protocol import Tools
from mplab.userfiles.strict.check import Checker
from mplab.userfiles.strict.yaml import parse_yaml

Reply = Callable[[Sequence[str]], CommandResult]
"""Function that returns the result of a command line, in place of the phone."""


class ScriptedPhone:
    """A phone whose shell runs no command: a function of the test returns the result of each command line.

    Attributes:
        commands: command lines that the shell was given, in order.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.commands: list[list[str]] = []

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Record a command line, and return the result that the function of the test gives.

        No error is raised, even if the exit code is not 0.
        """
        self.commands.append(list(argv))
        return self._reply(argv)

    def program(self, program: Program) -> str:
        """Return the path of a program on the phone: ``/bin/NAME``."""
        return f"/bin/{program.name}"


class CellSettings(TypedDict, total=False):
    """Keyword arguments of `ScenarioCell`."""

    reply: Reply | None
    phone: object
    ui: object
    socks: str
    app_proxy: str
    facts: Mapping[str, Mapping[str, str]] | None
    time_limit_s: float


class ScenarioCell:
    """A cell in which a scenario can be run without a lab.

    Args:
        folder: folder for the files of the cell.
        reply: returns the result of a command line of the phone's shell; None: the scenario does not use a shell.
        phone: the phone, in place of a `ScriptedPhone` with `reply`.
        ui: user interface of the app or browser that the scenario opens.
        socks: value of `Context.socks`.
        app_proxy: value of `Context.app_proxy`.
        facts: service → facts about it, which `Context.service` returns.
        time_limit_s: time limit of the cell, seconds.

    Attributes:
        context: `Context` that the scenario gets.
        observations: observations that the scenario has recorded, oldest first.
        opened: number of times that the scenario has opened the app or browser.
    """

    def __init__(
        self,
        folder: Path,
        *,
        reply: Reply | None = None,
        phone: object = None,
        ui: object = None,
        socks: str = "",
        app_proxy: str = "",
        facts: Mapping[str, Mapping[str, str]] | None = None,
        time_limit_s: float = 60.0,
    ) -> None:
        self.observations: list[Observation] = []
        self.opened = 0
        self._ui = ui
        self._folder = folder
        self.context = Context(
            phone=cast("Phone", ScriptedPhone(reply) if reply is not None else phone),
            open_ui=self._open,
            observe=self._observe,
            rng=Random(1),  # noqa: S311 - repeatable, not secret
            cell_dir=folder,
            scratch_dir=folder,
            time_limit_s=time_limit_s,
            tools=Tools(node=Path("/bin/false"), node_modules=folder / "node_modules"),
            socks=socks,
            app_proxy=app_proxy,
            service=(facts or {}).__getitem__,
        )

    def run(self, scenario: AnyScenario, parameters: BaseModel) -> None:
        """Run a scenario with `parameters` once: open its session, run the session, close it."""
        with scenario.open(self.context, parameters) as session:
            session.run()

    def scores(self, name: str) -> list[Value]:
        """Return the values that ``scores.py`` of the registered scenario `name` computes from the observations.

        Raises:
            ScenarioMissingError: the scenario cannot be imported.
            WrongValueError: a value does not fit the scenario's ``METRICS``.
        """
        return checked_values(load(name), self.observations, {}, self._folder)

    def _open(self, *, switches: Sequence[str] = (), sound: str = "") -> AbstractContextManager[BrowserUi]:
        if switches or sound:
            raise NotImplementedError("a cell without a lab has no options of browsers")
        self.opened += 1
        return nullcontext(cast("BrowserUi", self._ui))

    def _observe(self, event: str, **fields: object) -> None:
        self.observations.append({"event": event, **fields})


def parameter_problems(scenario: AnyScenario, text: str) -> list[str]:
    """Return the problems of a scenario's parameters, one line each in the form of error messages; empty: none.

    Args:
        scenario: scenario that has the parameters.
        text: a YAML mapping, as below the scenario's name in an experiment file.
    """
    checker = Checker(parse_yaml(text.encode(), "x.yaml"))
    checker.model(scenario.parameters, checker.document.data)
    try:
        checker.raise_problems()
    except InputError as error:
        return str(error).splitlines()
    return []
