"""What a lab does with a phone on adb, whatever is around it: its readiness, its apps, its screen, its log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mplab.base.endpoints import Endpoints
from mplab.base.errors import DeviceError, InvalidCellError, LabNotReadyError, StepError
from mplab.base.paths import INTERFACES
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone.adb import AdbPhone
from mplab.drivers.phone.adb.apps import Apps
from mplab.drivers.phone.adb.film import Film
from mplab.drivers.phone.adb.probe import WITHOUT_ROOT
from mplab.drivers.phone.adb.radios import Radios
from mplab.drivers.phone.adb.readiness import check_ready, default_thresholds, prepare
from mplab.drivers.phone.adb.recovery import Recovery
from mplab.drivers.phone.adb.routing import Routing
from mplab.drivers.phone.adb.screen import LogCut
from mplab.drivers.phone.adb.systemproxy import SystemProxy
from mplab.drivers.phone.settings import AndroidPhoneFile
from mplab.drivers.transport.redirect import HTTP_PORT, IPTABLES_UNDO, SOCKS_PORT, iptables_script
from mplab.drivers.ui import AppUi
from mplab.drivers.ui.android import AndroidSettings
from mplab.drivers.ui.appium_android import AppiumAndroidFactory, AppiumPhone
from mplab.drivers.ui.dialogs import load_dialogs
from mplab.drivers.ui.tab import DevTools
from mplab.drivers.ui.uiautomator2 import UiAutomator2Factory
from mplab.drivers.ui.versions import outside
from mplab.lab.devtools import open_devtools
from mplab.lab.protocol import CellPart, Moment, PartJob, PartReport
from mplab.userfiles.app import AndroidApp
from mplab.userfiles.labuse import LabUse

_HTTP_PROXY = f"127.0.0.1:{HTTP_PORT}"


@dataclass(frozen=True)
class PhoneLook:
    """What was seen of a phone before a cell.

    Attributes:
        facts: serial, condition, clock, versions, what is not controlled: for ``cell.json``.
        clock_offset_ms: how far its clock is ahead of this host's.
        warnings: what may disturb the cell.
        ways_past: see `AndroidSide.ways_past`.
    """

    facts: Mapping[str, str | Sequence[str]]
    clock_offset_ms: float
    warnings: list[str] = field(default_factory=list)
    ways_past: list[str] = field(default_factory=list)


class AndroidSide:
    """A phone on adb as cells use it.

    Args:
        phone: the phone; rooted, unless the lab file uses it without root.
        file: what the lab file says of it.
        appium: starts Appium when it is first asked, and says where it listens.
        install: let Appium install its server on the phone.
    """

    def __init__(self, phone: AdbPhone, file: AndroidPhoneFile, *, appium: Callable[[], str], install: bool) -> None:
        self._phone = phone
        self._file = file
        self._appium = appium
        self._install = install
        self._settings = AndroidSettings(dialogs=load_dialogs())
        self._proxy = ""
        self._system_proxy: SystemProxy | None = None

    def take_over(self, proxy: str) -> None:
        """Have the phone stay awake, update nothing, and send its TCP and names to the agent on it, nothing else past
        it, until it is given back. Without root its apps alone can send theirs there.

        Args:
            proxy: address of the proxy, which stays reachable.

        Raises:
            LabNotReadyError: it is not rooted; an app that it needs is not there.
            DeviceError: it did not do this.
        """
        self.check_root(self._phone, self._file)
        prepare(self._phone)
        for package, how in (self._file.install or {}).items():
            Apps(self._phone).provide(package, Path(how.apk).expanduser() if how.apk else None, how.grant)
        self._proxy = proxy
        if self._phone.rooted:
            self._redirect()
        else:
            self._system_proxy = SystemProxy(self._phone)

    @staticmethod
    def check_root(phone: AdbPhone, file: AndroidPhoneFile) -> None:
        """Raise LabNotReadyError when a phone is not rooted, and its lab file does not say that it is used so."""
        if not phone.rooted and not file.unrooted:
            raise LabNotReadyError(
                f"{phone.label}: not rooted: its traffic can be sent to the agent by root alone, and a run needs that; "
                "with 'root: none' in the lab file runs use it for what can be told a proxy (docs/phones.md)"
            )

    def _redirect(self) -> None:
        phone, routing = self._phone, Routing(self._phone)
        routing.stop_ipv6()
        routing.stop_quic()
        phone.register(f"{phone.label}: no redirection to the agent", IPTABLES_UNDO)
        phone.script(iptables_script(self._proxy))

    def recover(self, reason: str) -> str:
        """After an attempt that failed: when the phone does not do its part any more, climb the recovery ladder.

        Args:
            reason: why the attempt failed.

        Returns:
            What helped: ``reconnect``, ``reboot``, …; "" when nothing was needed.

        Raises:
            LabNotReadyError: nothing helped: the phone is in quarantine.
            DeviceError: it was lost again.
        """
        if self._works():
            return ""
        found = Recovery(self._phone).recover(reason)
        Radios(self._phone).wait_up(*INTERFACES)
        if self.ways_past():  # a reboot forgets the rules
            self._redirect()
        return found.rung

    def _works(self) -> bool:
        """adb and root are there, and nothing can go past the agent."""
        try:
            return self._phone.link.state() == "device" and not self.ways_past()
        except DeviceError:
            return False

    def ways_past(self) -> list[str]:
        """Why traffic of a rooted phone can go past the agent, one sentence each; none of a phone without root, where
        that cannot be controlled. Raises DeviceError.
        """
        if not self._phone.rooted:
            return []
        routing, name = Routing(self._phone), self._phone.name
        ways = {
            "TCP and names are not redirected to the agent: its iptables rules are gone": not self._redirects(),
            "QUIC is open: its iptables rules are gone": routing.quic_open(),
            "IPv6 is open: its ip6tables rules are gone": routing.ipv6_open(),
        }
        return [f"{name}: {way}; apps may go past the transport" for way, is_open in ways.items() if is_open]

    def _redirects(self) -> bool:
        return self._phone.script("iptables -w -t nat -C OUTPUT -j mplab", check=False).exit_code == 0

    def look(self, app: AndroidApp | None) -> PhoneLook:
        """See whether it is fit for a cell, and which version of the app it has.

        Args:
            app: that the cell is done with, or None.

        Raises:
            DeviceError: it is not fit; with every reason.
            StepError: the app is not there.
        """
        phone = self._phone
        found = check_ready(phone, self._file.ready or default_thresholds(), self._file.apps)
        condition = found.condition
        facts: dict[str, str | Sequence[str]] = {
            "serial": phone.serial,
            "root": phone.root.value,
            "battery_percent": str(condition.battery_percent),
            "temperature_c": str(condition.temperature_c),
            "clock_uncertainty_ms": f"{found.clock.uncertainty_s * 1000:.1f}",
            "quic_open": str(found.quic_open).lower(),
            "ipv6_open": str(found.ipv6_open).lower(),
            **_uncontrolled(phone),
        }
        warnings = []
        if app is not None:
            version = Apps(phone).version(app.package)
            if not version:
                raise StepError(f"{phone.label}: {app.package} is not installed: install it, or choose another app")
            facts |= {"app": app.package, "app_version": version}
            if problem := outside(version, app.versions):
                warnings.append(f"{phone.name}: {app.package}: {problem}")
        return PhoneLook(facts, round(found.clock.offset_s * 1000, 3), warnings, self.ways_past())

    def log(self) -> LogCut:
        """Its log from now on."""
        return LogCut(self._phone)

    @property
    def films(self) -> bool:
        """The lab file asks for a film of every cell."""
        return bool(self._file.record_screen)

    def film(self, cell: Path) -> Film:
        """Film its screen from now on, for a cell's folder. Raises DeviceError."""
        return Film(self._phone, cell / "film", cell / "logs")

    @contextmanager
    def open(self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path) -> Iterator[AppUi]:
        """An app, stopped and ready to be opened, for as long as the context. Without root, one that takes the proxy in
        Android's settings meets the agent there.

        Args:
            app: which; it is cleared before, unless somebody has signed in to it.
            observe: is told of dialogs that were closed.
            screenshots: where steps that fail leave screenshot and element tree.

        Raises:
            StepError: the phone's screen cannot be driven.
            DeviceError: it has not taken the proxy.
        """
        with ExitStack() as stack:
            if self._system_proxy is not None and app.proxy:
                stack.enter_context(self._system_proxy.set(_HTTP_PROXY))
            yield stack.enter_context(self._driven(app, observe=observe, screenshots=screenshots))

    def _driven(
        self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        phone = self._phone
        settings = replace(
            self._settings, packages=(app.package,), fresh=not app.signed_in, observe=observe, screenshots=screenshots
        )
        if self._file.ui != "appium":
            return UiAutomator2Factory(phone.adb, settings, phone.name)()
        where = AppiumPhone(
            self._appium(), phone.serial, adb_port=phone.link.server.port, install=self._install, name=phone.name
        )
        return AppiumAndroidFactory(where, settings)()

    def devtools(self, app: AndroidApp) -> AbstractContextManager[DevTools | None]:
        """The DevTools of an app that runs, for as long as the context; None: it offers none. Raises DeviceError."""
        return open_devtools(self._phone, app.devtools)


class AndroidLab:
    """What a lab adds to `Lab` when its phone is an Android phone on adb: its apps, its steps of a cell."""

    android: AndroidSide

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the look at the phone with its log, and when the lab file asks for it, the film."""
        return [LookPart(self.android, job), *([FilmPart(self.android, job)] if self.android.films else [])]

    def recover(self, reason: str) -> str:
        """See `AndroidSide.recover`."""
        return self.android.recover(reason)

    def open_app(
        self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        """See `AndroidSide.open`."""
        return self.android.open(app, observe=observe, screenshots=screenshots)

    def open_devtools(self, app: AndroidApp) -> AbstractContextManager[DevTools | None]:
        """See `AndroidSide.devtools`."""
        return self.android.devtools(app)


class LookPart:
    """The step ``phone`` of a cell: the phone must be fit, its log is kept from then on, and nothing can go past the
    agent, neither before the scenario nor after it.

    Args:
        android: the phone.
        job: the cell.
    """

    name = "phone"
    moment: Moment = "app"

    def __init__(self, android: AndroidSide, job: PartJob) -> None:
        self._android = android
        self._job = job
        self._log: LogCut | None = None

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Begin the log, and look at the phone.

        Raises:
            DeviceError: the phone is not fit.
            StepError: the cell's app is not installed.
            InvalidCellError: traffic can go past the agent.
        """
        self._log = self._android.log()
        found = self._android.look(self._job.app)
        report.phone |= found.facts
        report.clock_offset_ms = found.clock_offset_ms
        report.warnings += found.warnings
        if found.ways_past:
            raise InvalidCellError(*found.ways_past)

    def finish(self) -> None:
        """Save ``logs/logcat.txt``. Raises DeviceError."""
        if self._log is not None:
            self._log.save(self._job.directory / "logs" / "logcat.txt")

    def judge(self) -> list[str]:
        """Return how traffic could go past the agent. Raises DeviceError."""
        return self._android.ways_past()


class FilmPart:
    """The step ``film`` of a cell: its screen while captures run. A lost film costs a warning, not the cell.

    Args:
        android: the phone.
        job: the cell.
    """

    name = "film"
    moment: Moment = "captures"

    def __init__(self, android: AndroidSide, job: PartJob) -> None:
        self._android = android
        self._directory = job.directory
        self._save: Callable[[], None] | None = None

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Begin the film. Raises DeviceError."""
        film = self._android.film(self._directory)

        def save() -> None:
            try:
                for part in film.save():
                    observe("film", file=str(part.path.relative_to(self._directory)), began=round(part.began, 3))
            except DeviceError as error:
                report.warnings.append(f"no film, or not all of it: {error}")

        self._save = save

    def finish(self) -> None:
        """Save its files; each is observed as ``film`` with the time at which it began."""
        if self._save is not None:
            self._save()

    def judge(self) -> list[str]:
        """Return nothing: no film makes a cell invalid."""
        return []


def told_to_apps(endpoints: Endpoints, use: LabUse) -> Endpoints:
    """With the agent's addresses for apps, where the phone is used without root, so that nothing leads them there."""
    if not use.unrooted:
        return endpoints
    return replace(endpoints, app_proxy=f"127.0.0.1:{SOCKS_PORT}", app_http_proxy=_HTTP_PROXY)


def facts_of(phone: AdbPhone) -> dict[str, str | Sequence[str]]:
    """What a phone says it is: name, model, system, kernel; its serial, how it gives root, what is not controlled."""
    return {**vars(phone.identity()), "serial": phone.serial, "root": phone.root.value, **_uncontrolled(phone)}


def _uncontrolled(phone: AdbPhone) -> dict[str, Sequence[str]]:
    """What cannot be controlled on it, when there is something."""
    return {} if phone.rooted else {"uncontrolled": list(WITHOUT_ROOT)}


def capture_points_of(phone: AdbPhone) -> list[CapturePoint]:
    """Its interfaces and ``lo``, in files that call them ``wlan0`` and ``rmnet0`` whatever it calls them; none of a
    phone that is not rooted.
    """
    if not phone.rooted:
        return []
    return [
        CapturePoint(phone, phone.devices.get(name, name), f"phone-{name}.pcapng", name)
        for name in (*INTERFACES.values(), "lo")
    ]


def check_there(phone: AdbPhone) -> None:
    """Raise DeviceError when adb does not reach it."""
    if (state := phone.link.state()) != "device":
        raise DeviceError(phone.label, f"adb says it is {state or 'not there'}")
