"""The ``Lab`` protocol: what a run needs of a lab, whatever its phone, its shapers and its proxy are."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self

from mplab.base.endpoints import Endpoints
from mplab.base.undo import UndoStack
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone import Phone
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.proxy import Proxy
from mplab.drivers.services import RunningServices
from mplab.drivers.shaper import Shaper
from mplab.drivers.transport import Transport
from mplab.drivers.transport.agent import Agent
from mplab.drivers.ui import AppUi, BrowserFactory
from mplab.drivers.ui.console import ConsoleLog

if TYPE_CHECKING:
    from mplab.drivers.ui.tab import DevTools
    from mplab.userfiles.app import AndroidApp

Moment = Literal["app", "captures"]
"""When a part of a cell starts: ``app`` before the app is prepared, ``captures`` when the captures have begun."""


class PartJob(Protocol):
    """The attempt at a cell that a part serves."""

    @property
    def directory(self) -> Path:
        """The cell's folder; ``logs`` is in it."""

    @property
    def app(self) -> "AndroidApp | None":
        """The Android app that the cell is done with, or None."""


class PartReport(Protocol):
    """What parts add to ``cell.json``."""

    phone: dict[str, str | Sequence[str]]
    clock_offset_ms: float
    warnings: list[str]


class CellPart(Protocol):
    """A step that a lab adds to one attempt at a cell: the log of its phone, a film of the screen."""

    @property
    def name(self) -> str:
        """Name of the step."""

    @property
    def moment(self) -> Moment:
        """When it starts."""

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Start it.

        Args:
            report: gets facts and warnings, now and until `finish` has returned.
            observe: records an observation of the cell.

        Raises:
            InvalidCellError: the lab is not what the cell needs.
            CellError: it cannot be started.
        """

    def finish(self) -> None:
        """End it and save its files. Called once for each `start`, also when that has raised.

        Raises:
            CellError: its files are lost, and the cell with them.
        """

    def judge(self) -> list[str]:
        """Return why the cell is invalid, one sentence each. Called after `finish`, when the scenario has ended."""


class Lab(Protocol):
    """A phone with two paths to a proxy, and the origin behind it, for as long as its context."""

    def __enter__(self) -> Self:
        """Bring everything up; what has been started is stopped again when a part fails.

        Raises:
            LabNotReadyError: a part is missing, or somebody else's.
            DeviceError: a part does not come up.
        """

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take everything down, in reverse order."""

    @property
    def phone(self) -> Phone:
        """The phone."""

    @property
    def shaper(self) -> Shaper:
        """What the phone's paths are made by."""

    @property
    def proxy(self) -> Proxy:
        """What the phone's agent connects to."""

    @property
    def endpoints(self) -> Endpoints:
        """Where phone, proxy and origin find each other."""

    @property
    def services(self) -> RunningServices:
        """What the origin has beside web sites and files."""

    @property
    def scratch(self) -> Path:
        """Folder for what must not outlive the lab."""

    def describe(self) -> Mapping[str, object]:
        """What is known of its parts only when they are up: of each router, what it says it is."""

    def origin_logs(self) -> Sequence[Path]:
        """The logs of the origin's web server and names."""

    def capture_points(self) -> list[CapturePoint]:
        """Every place where a cell's packets are captured."""

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> BrowserFactory:
        """Opens browsers on the phone, or on the desktop peer.

        Args:
            screenshots: where steps that fail leave screenshot and page source.
            keys: file for the keys of the browsers' TLS connections, or None.
            node: ``phone`` or ``peer``.
            browser: ``chromium`` or ``firefox``.
            console: keeps what pages write to the console, or None.
        """

    def open_app(
        self, app: "AndroidApp", *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        """Stop an app that is installed on the phone and make it ready to be opened, for as long as the context.

        Args:
            app: which; it is cleared before, unless somebody has signed in to it.
            observe: records dialogs that were closed.
            screenshots: where steps that fail leave screenshot and element tree.

        Raises:
            StepError: the phone has no apps of its own, or its screen cannot be driven.
            DeviceError: the phone did not do its part.
        """

    def open_devtools(self, app: "AndroidApp") -> "AbstractContextManager[DevTools | None]":
        """Reach the DevTools of an app that runs, for as long as the context; None: it offers none.

        Raises:
            StepError: the phone has no apps of its own.
            DeviceError: the phone did not do its part.
        """

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the steps that this lab adds to an attempt at a cell, in the order in which they start."""

    def recover(self, reason: str) -> str:
        """Recover the phone after an attempt that failed.

        Args:
            reason: why it failed.

        Returns:
            What helped: ``reconnect``, ``reboot``, …; "" when nothing was needed.

        Raises:
            LabNotReadyError: nothing helped.
            DeviceError: the phone was lost again.
        """

    def open_sound(self, log: Path) -> SoundCard:
        """The phone's sound card, for as long as its context; its programs write to `log`."""

    def set_up_transport(self, transport: Transport, *, logs: Path, undo: UndoStack) -> Agent:
        """Prepare phone and proxy for a transport, and the agent, which is not started yet; `undo` takes all back.

        Args:
            transport: how the phone's TCP travels.
            logs: folder for the agent's logs.
            undo: where every change registers its undo before it is made.
        """

    def origin_congestion_control(self) -> str:
        """What the origin's own sockets use (agent and proxy pin theirs)."""

    def check_alive(self) -> None:
        """Raise DeviceError when parts of the lab have ended or were lost; the message names all of them."""

    def revive(self) -> list[str]:
        """Start programs of the lab again that have ended by themselves.

        Returns:
            One sentence for each.

        Raises:
            DeviceError: a part has ended that cannot be started again.
            LabNotReadyError: a program is not ready in time.
        """
