"""`Context`, the interface of a scenario to its cell, and the protocols of its members."""

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
    from mplab.userfiles.app import AndroidApp


class Observer(Protocol):
    """Write observations to the cell's ``scenario.jsonl``."""

    def __call__(self, event: str, **fields: object) -> None:
        """Record `event` with the wall-clock time and `fields`, each a JSON value."""


@dataclass(frozen=True)
class Tools:
    """Absolute paths of host programs that a scenario may use."""

    node: Path
    node_modules: Path


class AppFactory(Protocol):
    """Open apps that are installed on the phone (Android)."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager[AppUi]:
        """Return a context manager that prepares an app, and yields the `AppUi` that drives the app.

        The app is stopped and ready to be opened.

        Args:
            app: the app. Its data is cleared first, unless the app needs a signed-in account.

        Raises:
            StepError: the phone's screen cannot be driven, or the app is not installed.
        """


class DevToolsFactory(Protocol):
    """Connect to the DevTools of apps on the phone (Android)."""

    def __call__(self, app: "AndroidApp") -> AbstractContextManager["DevTools | None"]:
        """Return a context manager that connects to a running app. It yields None if the app offers no DevTools.

        Raises:
            DeviceError: the phone failed.
        """


def _not_declared(*_arguments: object, **_options: object) -> NoReturn:
    raise StepError("the scenario has not declared this resource. Declare it in services or needs_ui")


@dataclass(frozen=True)
class Context:
    """Resources that a scenario may use while it runs."""

    phone: Phone
    open_ui: BrowserFactory
    observe: Observer
    rng: Random
    """Random numbers, seeded by the cell's seed: a retry of the cell gets the same numbers."""
    cell_dir: Path
    """Folder of the cell's results."""
    scratch_dir: Path
    """Temporary folder, removed after the cell."""
    time_limit_s: float
    tools: Tools
    socks: str = ""
    """Address of the SOCKS5 server on the phone over which the transport carries datagrams; "": the transport carries
    none, and datagrams follow the default route."""
    app_proxy: str = ""
    """Address of the SOCKS5 server on the phone that apps must use for TCP and that resolves names; "": all TCP takes
    the transport without a proxy. Only scenarios that declare ``socks`` get an address."""
    open_peer_ui: BrowserFactory = _not_declared
    """Opens browsers on the desktop peer, which reaches the services over a wired link."""
    service: Callable[[str], Mapping[str, str]] = _not_declared
    """Returns the facts of a service that the scenario declares: URLs, accounts."""
    open_sound: Callable[[], AbstractContextManager[SoundCard]] = _not_declared
    """Opens the phone's sound card. The card records what a browser of ``open_ui(sound=card.server)`` plays."""
    open_app: AppFactory = _not_declared
    """Opens Android apps; only on phones that have them."""
    open_devtools: DevToolsFactory = _not_declared
    """Connects to the DevTools of Android apps; only on phones that have them."""
    android: "AndroidApp | None" = None
    """The Android app that the scenario uses; None: the phone is virtual, and web pages replace apps."""

    def warn(self, text: str) -> None:
        """Report a disturbance of the cell: the cell still counts, and the report flags it.

        Args:
            text: a sentence; repeats of the same sentence count once.
        """
        self.observe("warning", text=text)
