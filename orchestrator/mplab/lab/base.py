"""Define the base class of all labs: the parts that do not depend on the phone, the network or the servers."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mplab.base.endpoints import Endpoints
from mplab.base.errors import LabNotReadyError, StepError, check_each
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.phone.buffers import limit_receive_buffer
from mplab.drivers.proxy import Proxy
from mplab.drivers.proxy.protocol import Servers
from mplab.drivers.services import RunningServices
from mplab.drivers.transport import Transport
from mplab.drivers.transport.agent import Agent
from mplab.drivers.transport.direct import Carrier
from mplab.drivers.ui import AppUi
from mplab.drivers.ui.appium import AppiumServer
from mplab.format.sockets import SocketSettings
from mplab.lab.driver import LabSettings
from mplab.lab.protocol import CellPart, PartJob
from mplab.userfiles.experiments.app import AndroidApp

if TYPE_CHECKING:
    from mplab.base.browser.tab import DevTools


class BaseLab:
    """Common code of all labs. A lab is up from the start to the end of its context.

    Args:
        settings: settings of the lab.
    """

    endpoints: Endpoints
    phone: Phone
    servers: Servers

    def __init__(self, settings: LabSettings) -> None:
        self._seed = settings.seed
        self._use = settings.use
        self._run_id = settings.run_id
        self.congestion_control = settings.congestion_control
        self._logs = settings.logs
        self._wanted = tuple(settings.services)
        self._stack = ExitStack()
        self._appium: AppiumServer | None = None

    def __enter__(self) -> Self:
        """Start all parts of the lab. If one fails, stop those that were started."""
        try:
            self._bring_up()
        except BaseException:
            self._stack.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop all parts of the lab, in reverse order."""
        self._stack.__exit__(kind, error, trace)

    def _bring_up(self) -> None:
        """Start all parts of the lab. Every lab overrides this method.

        For each part that it starts, the overriding method must push an exit callback that stops the part.

        Raises:
            NotImplementedError: the lab does not override this method.
        """
        raise NotImplementedError

    @property
    def proxy(self) -> Proxy:
        """Return the proxy, to which the phone's agent connects."""
        return self.servers.proxy

    @property
    def services(self) -> RunningServices:
        """Return the services of the origin, e.g. Icecast; its web and file servers are not included."""
        return self.servers.services

    def origin_logs(self) -> list[Path]:
        """Return the logs of the origin's web server."""
        return self.servers.logs()

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's own sockets."""
        return self.servers.origin_congestion_control()

    def _appium_url(self) -> str:
        """Return the URL of Appium; the first call starts it."""
        if self._appium is None:
            self._appium = self._stack.enter_context(AppiumServer(self._logs / "appium.log"))
        return self._appium.url

    def check_alive(self) -> None:
        """Raise DeviceError if parts of the lab have ended or were lost. See `Lab`."""
        check_each(self._checks())

    def _checks(self) -> list[Callable[[], None]]:
        """Return functions, each of which raises DeviceError if one part of the lab has ended or was lost.

        Functions for parts that other parts depend on come first.
        """
        return [self.servers.check_alive, *([self._appium.check_alive] if self._appium else [])]

    def revive(self) -> list[str]:
        """Restart programs of the lab that have ended; return one sentence for each. See `Lab`."""
        return [*self.servers.revive(), *(self._appium.revive() if self._appium else [])]

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the steps that this lab adds to a cell: none."""
        return ()

    def recover(self, reason: str) -> str:
        """Return "": a phone that is a node of the virtual lab needs no recovery. See `Lab`."""
        return ""

    def open_app(
        self,
        app: AndroidApp,
        *,
        observe: Callable[..., object],
        screenshots: Path,
    ) -> AbstractContextManager[AppUi]:
        """Raise StepError: this phone has no apps."""
        raise self._no_apps(app)

    def open_devtools(self, app: AndroidApp) -> "AbstractContextManager[DevTools | None]":
        """Raise StepError: this phone has no apps."""
        raise self._no_apps(app)

    def _no_apps(self, app: AndroidApp) -> StepError:
        return StepError(f"{self.phone.name}: {app.package} is an Android app, which a virtual phone cannot run")

    def prepare_apps(self, transport: Transport, undo: UndoStack) -> None:
        """Raise LabNotReadyError if `transport` uses the direct route, which this lab lacks. See `Lab`."""
        if transport.direct:
            raise LabNotReadyError(f"{self.phone.name}: this lab has no direct route to the origin")

    def origin_counters(self) -> Mapping[str, int]:
        """Return {}: this lab has no direct route to the origin. See `Lab`."""
        return {}

    def use_congestion_control(self, algorithm: str) -> None:
        """Make an algorithm the default of the lab's kernels, for programs that choose none, like the origin's.

        A lab whose kernels are not its own changes nothing.
        """

    def set_up_transport(
        self, transport: Transport, *, sockets: SocketSettings, logs: Path, undo: UndoStack
    ) -> Carrier:
        """Prepare phone and proxy for a transport. Return the agent, which is not started yet.

        Args:
            transport: transport that carries the TCP connections of the phone's apps.
            sockets: settings of the sockets of agent and proxy, and of the origin's as far as the lab can set them.
            logs: folder for the agent's logs.
            undo: every change registers its undo here before it is made.
        """
        if not self.endpoints.app_proxy:  # otherwise the phone cannot be changed, and only the agent binds its sockets
            transport.setup(self.phone, undo)
        self.use_congestion_control(sockets.congestion_control)
        if sockets.receive_buffer_bytes is not None:
            limit_receive_buffer(self.phone, sockets.receive_buffer_bytes, undo)
        settings = transport.agent_settings()
        self.proxy.use(settings.session, sockets.congestion_control)
        agent = Agent(
            phone=self.phone,
            settings=settings,
            endpoints=self.endpoints,
            secret_file=self.servers.secret_file,
            congestion_control=sockets.congestion_control,
            logs=logs,
        )
        undo.register("agent", agent.stop)
        return agent
