"""Define the ``Lab`` protocol: the interface of a lab for a run, whatever its phone, shapers and proxy are."""

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
from mplab.drivers.transport.direct import Carrier
from mplab.drivers.ui import AppUi, BrowserFactory
from mplab.drivers.ui.console import ConsoleLog
from mplab.format.sockets import SocketSettings

if TYPE_CHECKING:
    from mplab.base.browser.tab import DevTools
    from mplab.userfiles.experiments.app import AndroidApp

Moment = Literal["app", "captures"]
"""Time at which a `CellPart` starts: ``app``: before the app is prepared, ``captures``: after the captures' start."""


class PartJob(Protocol):
    """Properties of an attempt at a cell that a `CellPart` may use."""

    @property
    def directory(self) -> Path:
        """Return the folder of the attempt's files; logs are in its folder ``logs``."""

    @property
    def app(self) -> "AndroidApp | None":
        """Return the Android app that the cell uses, or None."""


class PartReport(Protocol):
    """The fields of ``cell.json`` that a `CellPart` may fill in."""

    phone: dict[str, str | Sequence[str]]
    clock_offset_ms: float
    warnings: list[str]


class CellPart(Protocol):
    """A step that a lab adds to each attempt at a cell, such as recording the log or the screen of its phone."""

    @property
    def name(self) -> str:
        """Return the name of the step."""

    @property
    def moment(self) -> Moment:
        """Return the time at which the step starts."""

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Start the step.

        Args:
            report: receives facts and warnings, until `finish` has returned.
            observe: records an observation of the cell.

        Raises:
            InvalidCellError: the treatment would not be the requested one, for example traffic can bypass the agent.
            CellError: the step cannot be started.
        """

    def finish(self) -> None:
        """End the step and save its files. Called once for each `start`, even if that raised.

        Raises:
            CellError: a file of the step is lost, so the cell fails.
        """

    def judge(self) -> list[str]:
        """Return why the cell is invalid, one sentence each. Called after `finish` and the end of the scenario."""


class Lab(Protocol):
    """A phone with two paths to a proxy, and the origin behind the proxy. The lab is up until its context ends."""

    def __enter__(self) -> Self:
        """Start all parts of the lab. If one fails, stop those that were started.

        Raises:
            LabNotReadyError: a part is missing, or in use.
            DeviceError: a part does not start.
        """

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all parts of the lab, in reverse order."""

    @property
    def phone(self) -> Phone:
        """Return the phone."""

    @property
    def shaper(self) -> Shaper:
        """Return the shaper of the phone's paths."""

    @property
    def proxy(self) -> Proxy:
        """Return the proxy, to which the phone's agent connects."""

    @property
    def endpoints(self) -> Endpoints:
        """Return the addresses of proxy, name server and agent, as the phone sees them."""

    @property
    def services(self) -> RunningServices:
        """Return the services of the origin, e.g. Icecast; its web and file servers are not included."""

    @property
    def scratch(self) -> Path:
        """Return a folder for files that must not outlive the lab."""

    def describe(self) -> Mapping[str, object]:
        """Return facts that are known only when the lab is up, like the identity of each router."""

    def origin_logs(self) -> Sequence[Path]:
        """Return the logs of the origin's web server."""

    def capture_points(self, *, direct: bool = False) -> list[CapturePoint]:
        """Return every capture point of a cell.

        Args:
            direct: the transport uses the direct route: the far end is the origin, not the proxy.
        """

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> BrowserFactory:
        """Return a factory of browsers on the phone or the desktop peer.

        Args:
            screenshots: folder for screenshots and page sources of failed steps.
            keys: file for the keys of the browsers' TLS connections, or None.
            node: ``phone`` or ``peer``.
            browser: ``chromium`` or ``firefox``.
            console: records what pages write to the console, or None.
        """

    def open_app(
        self, app: "AndroidApp", *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        """Stop an app, and yield the driver of its user interface; the caller opens the app by this driver.

        Args:
            app: the app. Its data is cleared first, unless a user has signed in to it.
            observe: called with each dialog that was closed.
            screenshots: folder for screenshots and element trees of failed steps.

        Raises:
            StepError: the phone has no apps, or its screen cannot be driven.
            DeviceError: the phone failed.
        """

    def open_devtools(self, app: "AndroidApp") -> "AbstractContextManager[DevTools | None]":
        """Return a context that yields the connected DevTools of a running app, or None if the app offers none.

        Raises:
            StepError: the phone has no apps.
            DeviceError: the phone failed.
        """

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the steps that this lab adds to an attempt at a cell, in the order in which they start."""

    def recover(self, reason: str) -> str:
        """Recover the phone after a failed attempt.

        Args:
            reason: why the attempt failed.

        Returns:
            The recovery step (rung) after which the phone works: ``reconnect``, ``reboot``, …; "" if none was needed.

        Raises:
            LabNotReadyError: no step helped.
            DeviceError: the phone was lost again.
        """

    def open_sound(self, log: Path) -> SoundCard:
        """Return the phone's sound card, whose context is not yet entered; its programs log to `log`."""

    def prepare_apps(self, transport: Transport, undo: UndoStack) -> None:
        """Prepare the phone so that the sockets of apps that start from now on can use a transport.

        Only the direct route needs this. It is called before the scenario is prepared.

        Args:
            transport: transport that carries the TCP connections of the phone's apps.
            undo: every change registers its undo here before it is made.

        Raises:
            LabNotReadyError: the transport uses the direct route, which this lab lacks.
        """

    def origin_counters(self) -> Mapping[str, int]:
        """Return the network counters of the kernel on which the origin runs; {} in labs without a direct route."""

    def set_up_transport(
        self, transport: Transport, *, sockets: SocketSettings, logs: Path, undo: UndoStack
    ) -> Carrier:
        """Prepare phone and proxy for a transport. Return the agent, which is not started yet.

        On the direct route there is no agent; the returned object has its methods, and they do nothing.

        Args:
            transport: transport that carries the TCP connections of the phone's apps.
            sockets: settings of the sockets of agent and proxy, and of the origin's as far as the lab can set them.
            logs: folder for the agent's logs.
            undo: every change registers its undo here before it is made.
        """

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's own sockets; agent and proxy set theirs themselves."""

    def check_alive(self) -> None:
        """Raise DeviceError if parts of the lab have ended or were lost; the message names all of them."""

    def revive(self) -> list[str]:
        """Restart programs of the lab that have ended by themselves.

        Returns:
            One sentence for each program.

        Raises:
            DeviceError: a part has ended that cannot be restarted.
            LabNotReadyError: a program is not ready in time.
        """
