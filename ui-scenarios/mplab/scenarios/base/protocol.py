"""Define `Context`, the resources that a cell gives to its scenario, and the protocols of its members."""

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
    from mplab.base.browser.tab import DevTools
    from mplab.userfiles.experiments.app import AndroidApp


class Observer(Protocol):
    """Function that writes observations to the cell's ``scenario.jsonl``."""

    def __call__(self, event: str, **fields: object) -> None:
        """Write the observation `event` with the wall-clock time and `fields`; each field is a JSON value."""


@dataclass(frozen=True)
class Tools:
    """Absolute paths of programs of the host that a scenario may use."""

    node: Path
    node_modules: Path


class AppFactory(Protocol):
    """Function that prepares an Android app on the phone for use."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager[AppUi]:
        """Return a context manager that prepares an app and yields the `AppUi` that drives it.

        The yielded app is not running yet. Its data was cleared, unless the app needs a signed-in account.

        Args:
            app: the app's section of ``app.yaml``.

        Raises:
            StepError: the phone's screen cannot be driven, or the app is not installed.
        """


class DevToolsFactory(Protocol):
    """Function that connects to the DevTools of an Android app on the phone."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager["DevTools | None"]:
        """Return a context manager that connects to a running app and yields its DevTools; None: it has no DevTools.

        Raises:
            DeviceError: the phone failed.
        """


def _not_declared(*_arguments: object, **_options: object) -> NoReturn:
    raise StepError("the scenario has not declared this resource. Declare it in services or needs_ui")


@dataclass(frozen=True)
class Context:
    """Resources that a cell gives to its scenario."""

    phone: Phone
    open_ui: BrowserFactory
    observe: Observer
    rng: Random
    """Random numbers, seeded with the cell's seed: a retry of the cell gets the same numbers."""
    cell_dir: Path
    """Folder for the cell's results."""
    scratch_dir: Path
    """Temporary folder, removed after the cell."""
    time_limit_s: float
    tools: Tools
    socks: str = ""
    """Address of the SOCKS5 server on the phone that accepts UDP datagrams for the transport; "": the transport carries
    no datagrams, and they take the default route."""
    app_proxy: str = ""
    """Address of the SOCKS5 server on the phone that apps must use for TCP and that resolves names; "": apps need no
    proxy, because all TCP takes the transport. Only scenarios that set `Scenario.socks` get an address."""
    open_peer_ui: BrowserFactory = _not_declared
    """Opens a browser on the desktop peer, which reaches the services over a wired link."""
    service: Callable[[str], Mapping[str, str]] = _not_declared
    """Returns the facts of a service by its name, such as URLs and accounts. `Scenario.services` must list the name."""
    open_sound: Callable[[], AbstractContextManager[SoundCard]] = _not_declared
    """Opens the phone's sound card, which records the sound of a browser opened by ``open_ui(sound=card.server)``."""
    open_app: AppFactory = _not_declared
    """Prepares an Android app; only on Android phones."""
    open_devtools: DevToolsFactory = _not_declared
    """Connects to the DevTools of an Android app; only on Android phones."""
    android: "AndroidApp | None" = None
    """The Android app that the scenario uses; None: the phone is virtual, and web pages replace apps."""

    def warn(self, text: str) -> None:
        """Write a warning that the cell was disturbed. The cell stays valid, and the report shows the warning.

        Args:
            text: a sentence; the same sentence counts only once.
        """
        self.observe("warning", text=text)
