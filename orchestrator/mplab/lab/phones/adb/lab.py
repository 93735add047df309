"""Run a lab around a real phone on adb: routers and servers shape its paths, containers are its proxy and origin.

No part is in a namespace that ends with the run. Every change to phone, routers and servers is therefore written to the
undo journal before it is made: the next start reverts the changes of a killed run. The host process stops the
containers.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import structlog

from mplab.base.endpoints import Endpoints
from mplab.base.errors import DeviceError, LabNotReadyError, StepError
from mplab.base.lock import resource_lock
from mplab.base.undo import UndoJournal, UndoStack
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone.adb import AdbPhone, AdbServer, settings_of
from mplab.drivers.phone.adb.kernel import keep_mptcp, keep_receive_buffers, read_kernel
from mplab.drivers.phone.adb.radios import Radios
from mplab.drivers.phone.adb.server import default_home, user_keys
from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.proxy import ServerSettings, driver_of
from mplab.drivers.shaper.attached import AttachedShaper
from mplab.drivers.shaper.driver import phone_driver_of
from mplab.drivers.shaper.owner import Owner, held_machines, undo_directory
from mplab.drivers.shaper.probe import LinkProbe
from mplab.drivers.shaper.protocol import HeldMachine
from mplab.drivers.transport import Transport
from mplab.drivers.transport.direct import Carrier
from mplab.drivers.ui import BrowserFactory
from mplab.drivers.ui.console import ConsoleLog
from mplab.format.sites import DNS_ADDRESS
from mplab.format.sockets import SocketSettings
from mplab.lab.android import AndroidLab, AndroidSide, capture_points_of, check_there, facts_of, told_to_apps
from mplab.lab.base import BaseLab
from mplab.userfiles.labs.lab import LabFile
from mplab.userfiles.labs.labuse import LabUse

_log = structlog.get_logger(__name__)


class BenchLab(AndroidLab, BaseLab):
    """The lab around a real phone on adb; see `Lab`."""

    phone: AdbPhone
    shaper: AttachedShaper
    scratch: Path
    _buffers_kept = False

    def _bring_up(self) -> None:
        lab, settings = _parts(self._use)
        self.scratch = Path(self._stack.enter_context(TemporaryDirectory(prefix="mplab-lab-")))
        self._logs.mkdir(parents=True, exist_ok=True)
        self._stack.enter_context(phone_lock(self._use, run_id=self._run_id))
        take_back()
        journal = self._stack.enter_context(UndoJournal(undo_directory()))
        self.endpoints = told_to_apps(endpoints_of(self._use), self._use)
        self._start_servers()
        server = self._stack.enter_context(_adb_server(self._logs / "adb-server.log"))
        self.phone = self._stack.enter_context(
            AdbPhone(self._use.phone, server, settings_of(settings), journal=journal)
        )
        self.android = AndroidSide(self.phone, settings, appium=self._appium_url, install=_has_sdk())
        Radios(self.phone).both_up()
        if self.phone.rooted:
            keep_mptcp(self.phone)
        self.android.take_over(self.endpoints.proxy)
        self.servers.start_proxy()
        self.shaper = self._hold_machines(lab, journal)

    def _start_servers(self) -> None:
        settings = ServerSettings(self._wanted, self.scratch, self._logs, self.congestion_control, self.endpoints)
        self.servers = driver_of(self._use.proxy).open(self._use.proxy, settings)
        self._stack.callback(self.servers.stop)
        self.servers.start({})

    def _hold_machines(self, lab: LabFile, journal: UndoJournal) -> AttachedShaper:
        """Reserve every machine that shapes a path of the phone until the lab ends, and return them as one shaper."""
        name, itself = self._use.phone, lab.by_itself(self._use.phone)
        machines = {machine.name: machine for machine in self._use.machines().values()}
        held: dict[str, HeldMachine] = {}
        if itself is not None:
            owner = Owner(self._stack.enter_context(UndoStack(journal)), self._run_id)
            held[name] = self._stack.enter_context(phone_driver_of(itself).hold(self.phone, itself, owner))
        others = [machine for machine in machines.values() if machine != itself]
        held |= self._stack.enter_context(held_machines(others, run_id=self._run_id))
        paths = [(path, held[machine.name]) for machine in machines.values() for path in machine.paths_of(name)]
        return AttachedShaper(name, paths, LinkProbe(self.phone, self.endpoints.probe_server))

    def set_up_transport(
        self, transport: Transport, *, sockets: SocketSettings, logs: Path, undo: UndoStack
    ) -> Carrier:
        """Prepare phone and proxy for a transport; return the agent. See `Lab`.

        Raises:
            DeviceError: the phone's kernel lacks a feature that the transport needs, or shows no sizes of receive
                buffers, which must be limited.
        """
        if problem := transport.missing_on_phone(partial(read_kernel, self.phone)):
            raise DeviceError(self.phone.label, problem)
        if sockets.receive_buffer_bytes is not None and not self._buffers_kept:
            keep_receive_buffers(self.phone)  # the undo of the cell is not in the journal
            self._buffers_kept = True
        return super().set_up_transport(transport, sockets=sockets, logs=logs, undo=undo)

    def describe(self) -> Mapping[str, object]:
        """Return the phone's identity, and the engine, images and configurations of the containers."""
        return {"nodes": [], "routers": {}, "phone": facts_of(self.phone), **self.servers.describe()}

    def capture_points(self, *, direct: bool = False) -> list[CapturePoint]:
        """Return the capture points on the phone and at the proxy."""
        return [*capture_points_of(self.phone), self.proxy.capture_point]

    def open_ui(
        self,
        screenshots: Path,
        keys: Path | None = None,
        *,
        node: str = "phone",
        browser: str = "chromium",
        console: ConsoleLog | None = None,
    ) -> BrowserFactory:
        """Return a factory that raises StepError: a real phone has apps, but no browser, and no desktop peer."""

        def refuse(**_settings: object) -> NoReturn:
            missing = "no desktop peer: its origin has only containers"
            raise StepError(f"a lab with a real phone has {missing if node == 'peer' else 'apps, but no browser'}")

        return refuse

    def open_sound(self, log: Path) -> SoundCard:
        """Raise StepError: a real phone has its own sound card, which cannot be recorded."""
        raise StepError(f"{self.phone.label}: the sound of a real phone cannot be recorded")

    def _checks(self) -> list[Callable[[], None]]:
        return [partial(check_there, self.phone), self.shaper.check_alive, *super()._checks()]

    def revive(self) -> list[str]:
        """Restart ended programs of the lab; return one sentence for each. See `Lab`.

        Connections to phone, routers and servers are restored on their next use.
        """
        return [*self.phone.link.server.revive(), *super().revive()]


def _parts(use: LabUse) -> tuple[LabFile, AdbPhoneFile]:
    """Return the lab file and the phone's entry in it. Raises LabNotReadyError if the phone is not a real one."""
    if use.file is None or not isinstance(use.settings, AdbPhoneFile):
        raise LabNotReadyError("a lab with a real phone needs a lab file")
    return use.file, use.settings


def endpoints_of(use: LabUse) -> Endpoints:
    """Return the endpoints of the lab: the proxy is at the first address that the lab file names.

    Raises:
        LabNotReadyError: the lab file names no address.
    """
    if use.proxy is None or not use.proxy.listen:
        raise LabNotReadyError("the lab file names no address at which the phone reaches the proxy: 'proxy: listen'")
    return Endpoints(proxy=use.proxy.listen[0], dns=f"{DNS_ADDRESS}:53")


@contextlib.contextmanager
def phone_lock(use: LabUse, *, run_id: str = "") -> Iterator[None]:
    """Lock the phone during the context. Raises LabNotReadyError if another process holds the lock."""
    _, settings = _parts(use)
    with resource_lock(settings.resource(use.phone), run_id=run_id):
        yield


def take_back() -> None:
    """Undo the changes that killed runs left on phones, routers and servers; log each."""
    for item in UndoJournal.recover(undo_directory()):
        _log.info("left by a dead run", step=item.name, owner_pid=item.owner_pid, failure=item.failure)


def identify_phone(use: LabUse) -> dict[str, str | Sequence[str]]:
    """Check that a run can use the phone, before any part of the run starts. Return its identity (`facts_of`).

    Raises:
        LabNotReadyError: the phone is missing, in use, or not rooted as required; the message has the remedy.
    """
    _, settings = _parts(use)
    try:
        with (
            phone_lock(use),
            _adb_server() as server,
            UndoJournal(undo_directory()) as journal,
            AdbPhone(use.phone, server, settings_of(settings), journal=journal) as phone,
        ):
            AndroidSide.check_root(phone, settings)
            return facts_of(phone)
    except DeviceError as error:
        raise LabNotReadyError(str(error)) from error


def _has_sdk() -> bool:
    """Return whether this machine has an Android SDK, which Appium needs to install its helpers on a phone."""
    return any(os.environ.get(name) for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"))


def _adb_server(log: Path | None = None) -> AdbServer:
    return AdbServer(default_home(), keys=user_keys(), log=log)
