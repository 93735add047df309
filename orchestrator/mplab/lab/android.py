"""Use a phone on adb in a lab of any kind: check it, open its apps, record its screen and log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from mplab.base.browser.tab import DevTools
from mplab.base.endpoints import Endpoints
from mplab.base.errors import DeviceError, InvalidCellError, LabNotReadyError, StepError
from mplab.base.paths import INTERFACES
from mplab.drivers.capture import CapturePoint
from mplab.drivers.phone.adb import AdbPhone
from mplab.drivers.phone.adb.apps import Apps
from mplab.drivers.phone.adb.probe import WITHOUT_ROOT
from mplab.drivers.phone.adb.radios import Radios
from mplab.drivers.phone.adb.readiness import check_ready, default_thresholds, prepare
from mplab.drivers.phone.adb.recovery import Recovery
from mplab.drivers.phone.adb.routing import Routing
from mplab.drivers.phone.adb.screen import Film, LogCut
from mplab.drivers.phone.adb.systemproxy import SystemProxy
from mplab.drivers.phone.settings import AndroidPhoneFile
from mplab.drivers.transport.redirect import HTTP_PORT, IPTABLES_UNDO, SOCKS_PORT, iptables_script
from mplab.drivers.ui import AppUi
from mplab.drivers.ui.android import AndroidSettings
from mplab.drivers.ui.appium_android import AppiumPhone, appium_session
from mplab.drivers.ui.dialogs import load_dialogs
from mplab.drivers.ui.uiautomator2 import uiautomator2_session
from mplab.drivers.ui.versions import outside
from mplab.lab.devtools import open_devtools
from mplab.lab.protocol import CellPart, Moment, PartJob, PartReport
from mplab.userfiles.experiments.app import AndroidApp
from mplab.userfiles.labs.labuse import LabUse

_HTTP_PROXY = f"127.0.0.1:{HTTP_PORT}"


@dataclass(frozen=True)
class PhoneLook:
    """The state of a phone before a cell.

    Attributes:
        facts: entries for ``cell.json``: serial, condition, clock, versions, and uncontrolled features.
        clock_offset_ms: the phone's clock minus this host's clock, ms.
        warnings: possible disturbances of the cell.
        ways_past: why traffic can bypass the agent; see `AndroidSide.ways_past`.
    """

    facts: Mapping[str, str | Sequence[str]]
    clock_offset_ms: float
    warnings: list[str] = field(default_factory=list)
    ways_past: list[str] = field(default_factory=list)


class AndroidSide:
    """Prepares, checks and recovers a phone on adb for cells; opens its apps, and records its screen and log.

    Args:
        phone: the phone; rooted, unless the lab file uses it without root.
        file: the phone's entry in the lab file.
        appium: starts Appium on its first call, and returns its URL.
        install: True: let Appium install its server on the phone.
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
        """Prepare the phone for cells until it is released: it stays awake, and installs no updates.

        TCP connections and DNS queries of the phone are redirected to the agent; IPv6 and all other UDP of apps
        are blocked. On a phone without root, only apps that can be configured to use a proxy reach the agent.

        Args:
            proxy: address of the proxy; TCP connections to it are not redirected.

        Raises:
            LabNotReadyError: the phone is not rooted, or a required app is missing.
            DeviceError: the phone did not make a change.
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
        """Raise LabNotReadyError if a phone is not rooted, unless its lab file says ``root: none``."""
        if not phone.rooted and not file.unrooted:
            raise LabNotReadyError(
                f"{phone.label}: not rooted: only root can redirect its traffic to the agent, and a run needs that; "
                "with 'root: none' in the lab file, runs use only apps that have a proxy setting "
                "(docs/how-to/phone-without-root.md)"
            )

    def _redirect(self) -> None:
        phone, routing = self._phone, Routing(self._phone)
        routing.stop_ipv6()
        routing.stop_quic()
        phone.register(f"{phone.label}: no redirection to the agent", IPTABLES_UNDO)
        phone.script(iptables_script(self._proxy))

    def recover(self, reason: str) -> str:
        """Check the phone after a failed attempt. If it does not work, run the recovery steps in order.

        Args:
            reason: why the attempt failed.

        Returns:
            The step (rung) after which the phone works: ``reconnect``, ``reboot``, …; "" if none was needed.

        Raises:
            LabNotReadyError: no step helped: the phone is in quarantine.
            DeviceError: the phone was lost again.
        """
        if self._works():
            return ""
        recovered = Recovery(self._phone).recover(reason)
        Radios(self._phone).wait_up(*INTERFACES)
        if self.ways_past():  # a reboot removes the rules
            self._redirect()
        return recovered.rung

    def _works(self) -> bool:
        """Return whether adb reaches the phone and no traffic can bypass the agent."""
        try:
            return self._phone.link.state() == "device" and not self.ways_past()
        except DeviceError:
            return False

    def ways_past(self) -> list[str]:
        """Return why traffic of a rooted phone can bypass the agent, one sentence each. Raises DeviceError.

        The list is empty for a phone without root, whose traffic mplab cannot redirect or block.
        """
        if not self._phone.rooted:
            return []
        routing, name = Routing(self._phone), self._phone.name
        bypasses = {
            "TCP and names are not redirected to the agent: its iptables rules are gone": not self._redirects(),
            "QUIC is open: its iptables rules are gone": routing.quic_open(),
            "IPv6 is open: its ip6tables rules are gone": routing.ipv6_open(),
        }
        return [f"{name}: {text}; apps may go past the transport" for text, is_open in bypasses.items() if is_open]

    def _redirects(self) -> bool:
        return self._phone.script("iptables -w -t nat -C OUTPUT -j mplab", check=False).exit_code == 0

    def look(self, app: AndroidApp | None) -> PhoneLook:
        """Check that the phone is ready for a cell; return its state and the version of the cell's app.

        Args:
            app: app of the cell, or None.

        Raises:
            DeviceError: the phone is not ready; the message has every reason.
            StepError: the app is not installed.
        """
        phone = self._phone
        readiness = check_ready(phone, self._file.ready or default_thresholds(), self._file.apps)
        condition = readiness.condition
        facts: dict[str, str | Sequence[str]] = {
            "serial": phone.serial,
            "root": phone.root.value,
            "battery_percent": str(condition.battery_percent),
            "temperature_c": str(condition.temperature_c),
            "clock_uncertainty_ms": f"{readiness.clock.uncertainty_s * 1000:.1f}",
            "quic_open": str(readiness.quic_open).lower(),
            "ipv6_open": str(readiness.ipv6_open).lower(),
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
        return PhoneLook(facts, round(readiness.clock.offset_s * 1000, 3), warnings, self.ways_past())

    def log(self) -> LogCut:
        """Start to record the phone's log (logcat); return the recording."""
        return LogCut(self._phone)

    @property
    def films(self) -> bool:
        """Return whether the lab file requests a recording of the phone's screen in every cell."""
        return bool(self._file.record_screen)

    def film(self, cell: Path) -> Film:
        """Start to record the phone's screen into ``film`` of the cell's folder `cell`. Raises DeviceError."""
        return Film(self._phone, cell / "film", cell / "logs")

    @contextmanager
    def open(self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path) -> Iterator[AppUi]:
        """Stop an app, and yield the driver of its user interface; the caller opens the app by this driver.

        On a phone without root, the agent is set as the proxy in Android's settings during the context, if the app uses
        this setting.

        Args:
            app: the app. Its data is cleared first, unless a user has signed in to it.
            observe: called with each dialog that was closed.
            screenshots: folder for screenshots and element trees of failed steps.

        Raises:
            StepError: the phone's screen cannot be driven.
            DeviceError: the phone did not accept the proxy setting.
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
            return uiautomator2_session(phone.adb, settings, phone.name)
        appium_phone = AppiumPhone(
            self._appium(), phone.serial, adb_port=phone.link.server.port, install=self._install, name=phone.name
        )
        return appium_session(appium_phone, settings)

    def devtools(self, app: AndroidApp) -> AbstractContextManager[DevTools | None]:
        """Return a context that yields the connected DevTools of a running app, or None if the app offers none.

        Raises:
            DeviceError: the phone failed.
        """
        return open_devtools(self._phone, app.devtools)


class AndroidLab:
    """Mixin for a lab whose phone is an Android phone on adb: adds the phone's apps, recovery and steps of a cell."""

    android: AndroidSide

    def cell_parts(self, job: PartJob) -> Sequence[CellPart]:
        """Return the step that checks the phone and, if the lab file requests it, the step that records the screen."""
        return [PhoneCheckPart(self.android, job), *([FilmPart(self.android, job)] if self.android.films else [])]

    def recover(self, reason: str) -> str:
        """Recover the phone after a failed attempt at a cell; see `AndroidSide.recover`."""
        return self.android.recover(reason)

    def open_app(
        self, app: AndroidApp, *, observe: Callable[..., object], screenshots: Path
    ) -> AbstractContextManager[AppUi]:
        """Stop an app, and yield the driver of its user interface; see `AndroidSide.open`."""
        return self.android.open(app, observe=observe, screenshots=screenshots)

    def open_devtools(self, app: AndroidApp) -> AbstractContextManager[DevTools | None]:
        """Connect to the DevTools of a running app; see `AndroidSide.devtools`."""
        return self.android.devtools(app)


class PhoneCheckPart:
    """The step ``phone`` of a cell: check the phone, record its log, check that no traffic can bypass the agent.

    The check for a bypass is made before the scenario and again after it.

    Args:
        android: the phone.
        job: the attempt at a cell.
    """

    name = "phone"
    moment: Moment = "app"

    def __init__(self, android: AndroidSide, job: PartJob) -> None:
        self._android = android
        self._job = job
        self._log: LogCut | None = None

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Start to record the phone's log; check the phone, and write its state into the report.

        Raises:
            DeviceError: the phone is not ready.
            StepError: the cell's app is not installed.
            InvalidCellError: traffic can bypass the agent.
        """
        self._log = self._android.log()
        look = self._android.look(self._job.app)
        report.phone |= look.facts
        report.clock_offset_ms = look.clock_offset_ms
        report.warnings += look.warnings
        if look.ways_past:
            raise InvalidCellError(*look.ways_past)

    def finish(self) -> None:
        """Save the phone's log as ``logs/logcat.txt`` of the cell. Raises DeviceError."""
        if self._log is not None:
            self._log.save(self._job.directory / "logs" / "logcat.txt")

    def judge(self) -> list[str]:
        """Return why traffic could bypass the agent, one sentence each. Raises DeviceError when the phone is lost."""
        return self._android.ways_past()


class FilmPart:
    """The step ``film`` of a cell: record the phone's screen while packets are captured.

    A lost recording is a warning, not a failure.

    Args:
        android: the phone.
        job: the attempt at a cell.
    """

    name = "film"
    moment: Moment = "captures"

    def __init__(self, android: AndroidSide, job: PartJob) -> None:
        self._android = android
        self._directory = job.directory
        self._save: Callable[[], None] | None = None

    def start(self, report: PartReport, observe: Callable[..., object]) -> None:
        """Start to record the phone's screen. Raises DeviceError."""
        film = self._android.film(self._directory)

        def save() -> None:
            try:
                for part in film.save():
                    observe("film", file=str(part.path.relative_to(self._directory)), began=round(part.began, 3))
            except DeviceError as error:
                report.warnings.append(f"no film, or not all of it: {error}")

        self._save = save

    def finish(self) -> None:
        """Save the files of the recording, and record an observation ``film`` with the start time of each."""
        if self._save is not None:
            self._save()

    def judge(self) -> list[str]:
        """Return []: a lost screen recording never makes a cell invalid."""
        return []


def told_to_apps(endpoints: Endpoints, use: LabUse) -> Endpoints:
    """Return `endpoints`; for a phone without root, with the agent's addresses in `app_proxy` and `app_http_proxy`."""
    if not use.unrooted:
        return endpoints
    return replace(endpoints, app_proxy=f"127.0.0.1:{SOCKS_PORT}", app_http_proxy=_HTTP_PROXY)


def facts_of(phone: AdbPhone) -> dict[str, str | Sequence[str]]:
    """Return facts about a phone: model, system, kernel, serial, root method, features that mplab cannot control."""
    return {**vars(phone.identity()), "serial": phone.serial, "root": phone.root.value, **_uncontrolled(phone)}


def _uncontrolled(phone: AdbPhone) -> dict[str, Sequence[str]]:
    """Return ``{"uncontrolled": features of the phone that mplab cannot control}``; {} for a rooted phone."""
    return {} if phone.rooted else {"uncontrolled": list(WITHOUT_ROOT)}


def capture_points_of(phone: AdbPhone) -> list[CapturePoint]:
    """Return the capture points of a phone: both interfaces and ``lo``; none if it is not rooted.

    The capture files are ``phone-wlan0.pcapng``, ``phone-rmnet0.pcapng`` and ``phone-lo.pcapng``, even if the phone has
    other names for its interfaces.
    """
    if not phone.rooted:
        return []
    return [
        CapturePoint(phone, phone.devices.get(name, name), f"phone-{name}.pcapng", name)
        for name in (*INTERFACES.values(), "lo")
    ]


def check_there(phone: AdbPhone) -> None:
    """Raise DeviceError if adb does not reach the phone."""
    if (state := phone.link.state()) != "device":
        raise DeviceError(phone.label, f"the phone's state in adb is {state or 'not there'}")
