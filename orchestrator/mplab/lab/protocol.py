"""The ``Lab`` protocol: what a run needs of a lab, whatever its phone, its shapers and its proxy are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

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
from mplab.drivers.ui import BrowserFactory
from mplab.drivers.ui.console import ConsoleLog

if TYPE_CHECKING:
    from mplab.lab.android import AndroidSide


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
    def android(self) -> "AndroidSide | None":
        """The phone as one that has a system, a clock and apps of its own; None: a virtual phone."""

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

    def describe(self) -> Mapping[str, Any]:
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
