"""The ``Scenario`` protocol and what a scenario is given."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from mplab.base.errors import StepError
from mplab.base.programs import Program
from mplab.drivers.phone import Phone
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.ui import Ui, UiFactory

if TYPE_CHECKING:
    from mplab.drivers.ui.tab import DevTools
    from mplab.userfiles.app import AndroidApp


class Parameters(BaseModel):
    """Base of a scenario's parameters: strict, frozen, unknown keys refused.

    Quantities use the types of ``mplab.format.units`` (``SizeBytes``, ``DurationS``, …), which read ``"1 MB"``
    and ``"30 s"``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


class Observer(Protocol):
    """Writes observations to the cell's ``scenario.jsonl``."""

    def __call__(self, event: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON value
        """Record `event` with the wall-clock time and `fields`."""


@dataclass(frozen=True)
class Tools:
    """Host programs a scenario may use, by absolute path."""

    node: Path
    node_modules: Path


class AppFactory(Protocol):
    """Opens apps that are installed on the phone (Android)."""

    def __call__(self, app: "AndroidApp", *, fresh: bool = True) -> AbstractContextManager[Ui]:
        """An app, stopped and ready to be opened, for as long as the context.

        Args:
            app: which.
            fresh: what it has stored is cleared before; without, it stays signed in.

        Raises:
            StepError: the phone's screen cannot be driven, or the app is not there.
        """


class DevToolsFactory(Protocol):
    """Reaches the DevTools of apps on the phone (Android)."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager["DevTools | None"]:
        """Those of an app that runs, for as long as the context; None: it offers none.

        Raises:
            DeviceError: the phone did not do its part.
        """


def _not_declared(*_arguments: object, **_options: object) -> NoReturn:
    raise StepError("a scenario may use only what it declares: services, needs_ui")


@dataclass(frozen=True)
class Context:
    """What a scenario may touch while it runs."""

    phone: Phone
    open_ui: UiFactory
    observe: Observer
    rng: Random
    cell_dir: Path
    scratch_dir: Path
    """A folder that is removed after the cell."""
    time_limit_s: float
    tools: Tools
    socks: str = ""
    """Address of the SOCKS5 server on the phone by which the transport carries datagrams; "": it carries none, and they
    go by the default route."""
    app_proxy: str = ""
    """Address of the SOCKS5 server on the phone that apps have to be given for their TCP, and that resolves names; "":
    their TCP takes the transport whatever they are told. Only scenarios that declare ``socks`` meet one."""
    open_peer_ui: UiFactory = _not_declared
    """Opens browsers on the desktop peer, which has a wire to the services."""
    service: Callable[[str], Mapping[str, str]] = _not_declared
    """Facts of a service that the scenario declares: URLs, accounts."""
    open_sound: Callable[[], AbstractContextManager[SoundCard]] = _not_declared
    """The phone's sound card, for as long as the context: what ``open_ui(sound=card.server)`` plays can be recorded."""
    open_app: AppFactory = _not_declared
    """Opens Android apps: of phones that have them alone."""
    open_devtools: DevToolsFactory = _not_declared
    """Reaches the DevTools of Android apps: of phones that have them alone."""
    android: "AndroidApp | None" = None
    """The Android app that the scenario is done with; None: the phone is virtual, its apps are pages."""

    def warn(self, text: str) -> None:
        """Say that something has disturbed the cell: it is counted all the same, and flagged in the report.

        Args:
            text: a sentence; the same one counts once.
        """
        self.observe("warning", text=text)


DEFAULT_CPUS = 0.5
"""Processors that a scenario without `cpus` keeps busy: curl, or a page that is seldom busy."""


class Scenario(Protocol):
    """What a user does in one app.

    ``run`` raises StepError (or any CellError) when the app does not do its part: the cell has failed; and CheckError
    when what was measured was made by the host, not by the network: the cell is invalid.
    """

    name: str
    title: str
    parameters: type[Parameters]
    needs_ui: bool
    services: tuple[str, ...]
    """Origin services that it uses: folders of ``proxy-docker/``."""

    # `cpus: float`, `browser: str`, `programs: tuple[Program, …]` and `socks: bool` may be declared, too: see
    # `cpus_of`, `browser_of`, `programs_declared_by`, `takes_socks`.

    def time_limit_s(self, parameters: Any) -> float:  # noqa: ANN401 - the scenario's own Parameters
        """Longest time that ``run`` may take, seconds."""

    def estimate_s(self, parameters: Any) -> float:  # noqa: ANN401
        """Usual time that ``run`` takes on a 7 Mbit/s path, seconds (for the plan's estimate)."""

    def prepare(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """Before captures start: clean the app."""

    def run(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """While captures run: what the user does; observations go to ``context.observe``."""

    def clean_up(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """After captures have stopped, also after an error."""


@runtime_checkable
class Checking(Protocol):
    """An optional step of a scenario, for what has to be known of the host before anything is measured."""

    def check(self, context: Context, parameters: Any) -> None:  # noqa: ANN401
        """Before `Scenario.prepare`: links are open, the transport is up, nothing is captured.

        Raises:
            CheckError: what the scenario measures would not be true here now; the cell is invalid.
        """


def browser_of(scenario: Scenario) -> str:
    """Which browser ``open_ui`` opens: what the scenario declares as ``browser``, ``chromium`` or ``firefox``."""
    return str(getattr(scenario, "browser", "chromium"))


def programs_declared_by(scenario: Scenario) -> tuple[Program, ...]:
    """What must be installed for a scenario, beside browser and services: what it declares as ``programs``."""
    return tuple(getattr(scenario, "programs", ()))


def takes_socks(scenario: Scenario) -> bool:
    """Whether it gives what it runs the proxy ``Context.app_proxy``: what it declares as ``socks``."""
    return bool(getattr(scenario, "socks", False))


def cpus_of(scenario: Scenario) -> float:
    """How many processors' time a scenario needs while it runs, lab and services included: what it declares as
    ``cpus``, or `DEFAULT_CPUS`.
    """
    return float(getattr(scenario, "cpus", DEFAULT_CPUS))
