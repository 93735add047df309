"""What a scenario is given in a cell: `Context`, and the protocols of its members."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NoReturn, Protocol

from mplab.base.errors import StepError
from mplab.drivers.phone import Phone
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.ui import AppUi, BrowserFactory

if TYPE_CHECKING:
    from mplab.drivers.ui.tab import DevTools
    from mplab.userfiles.app import AndroidApp


class Observer(Protocol):
    """Writes observations to the cell's ``scenario.jsonl``."""

    def __call__(self, event: str, **fields: object) -> None:
        """Record `event` with the wall-clock time and `fields`, each a JSON value."""


@dataclass(frozen=True)
class Tools:
    """Host programs a scenario may use, by absolute path."""

    node: Path
    node_modules: Path


class AppFactory(Protocol):
    """Opens apps that are installed on the phone (Android)."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager[AppUi]:
        """An app, stopped and ready to be opened, for as long as the context.

        Args:
            app: which; it is cleared before, unless somebody has signed in to it.

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
    open_ui: BrowserFactory
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
    open_peer_ui: BrowserFactory = _not_declared
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
