"""Define the state of an emulated phone while it is on, and its log."""

import asyncio
import itertools
import os
import time
from collections import deque
from dataclasses import dataclass, field, replace

from mplab.device.android.defaults import boot_properties, first_settings
from mplab.device.android.model import PhoneModel
from mplab.device.screen.protocol import InstalledPackage
from mplab.device.screen.scripted import ScriptedScreen

_MOST_LINES = 20_000


@dataclass(frozen=True)
class LogLine:
    """A line of the phone's log.

    Attributes:
        number: number of the line since the emulator was started, from 1.
        time: unix time of this machine's clock, s.
        level: priority: ``V``, ``D``, ``I``, ``W``, ``E`` or ``F``.
    """

    number: int
    time: float
    pid: int
    level: str
    tag: str
    text: str


class LogBuffer:
    """The phone's log: a buffer of the newest lines. Readers can wait for new lines."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._more = asyncio.Event()

    def add(self, tag: str, text: str, *, level: str = "I", pid: int = 1337) -> None:
        """Append `text` to the log, one log line for each of its lines."""
        for part in text.splitlines() or [""]:
            self._count += 1
            self._lines.append(LogLine(self._count, time.time(), pid, level, tag, part))
        self._more.set()

    def clear(self) -> None:
        """Remove all lines from the buffer. Line numbers continue."""
        self._lines.clear()

    def lines(self, after: int = 0) -> list[LogLine]:
        """Return the lines in the buffer whose number is greater than `after`."""
        return [line for line in self._lines if line.number > after]

    @property
    def last(self) -> int:
        """Return the number of the newest line; 0: nothing was written yet."""
        return self._count

    async def wait(self, after: int) -> None:
        """Wait until a line with a number greater than `after` has been written."""
        while self._count <= after:
            self._more.clear()
            await self._more.wait()


FIRST_APP_UID = 10100


@dataclass
class Package:
    """An installed app, with the changes that commands have made to it.

    Attributes:
        granted: names of granted permissions; ``*``: all were granted when the app was installed.
    """

    info: InstalledPackage
    uid: int
    enabled: bool = True
    chosen: bool = False
    """True: the app was enabled by a command, not by its manifest (``COMPONENT_ENABLED_STATE_ENABLED``)."""
    installed_at: float = field(default_factory=time.time)
    updated_at: float = field(default_factory=time.time)
    granted: set[str] = field(default_factory=set)
    size_bytes: int = 1_000_000

    @property
    def apk(self) -> str:
        """Return the path of the app's APK on the device."""
        if self.info.system:
            return f"/system/app/{self.info.name}/base.apk"
        return f"/data/app/~~mplab==/{self.info.name}-1/base.apk"


@dataclass
class Battery:
    """State of the battery: `level` in percent, temperature in degrees Celsius, and charger."""

    level: int
    temperature_c: float
    plugged: str
    """Charger: ``usb``, ``ac``, ``wireless`` or ``no``."""


@dataclass
class RadioState:
    """The switches of the radios, and whether the interfaces are up: `wifi_up` (``wlan0``), `data_up` (``rmnet0``)."""

    wifi: bool
    data: bool
    airplane: bool
    bluetooth: bool
    wifi_up: bool = False
    data_up: bool = False
    preferred_network: int = 33
    """Value of ``preferred_network_mode``: 33 is NR/LTE/…/GSM; 9 is LTE/…/GSM."""


@dataclass
class InstallSession:
    """An installation of an app from several APKs that is not yet committed."""

    options: tuple[str, ...]
    apks: list[bytes] = field(default_factory=list)


class State:
    """All state of a phone that its commands read and change.

    Args:
        model: the phone at power-on.
        screen: the screen of the phone.
    """

    def __init__(self, model: PhoneModel, screen: ScriptedScreen) -> None:
        self.model = model
        self.screen = screen
        self.log = LogBuffer()
        self.serial = model.serial
        self.rooted = model.root != "none"
        self.adb_root = False
        self.battery = Battery(model.battery.level, model.battery.temperature, model.battery.plugged)
        self.thermal_status = 0
        """Android's thermal status, from 0 (none) over 3 (severe) to 6 (shutdown)."""
        radios = model.radios
        self.radios = RadioState(radios.wifi, radios.data, radios.airplane, radios.bluetooth)
        self.properties: dict[str, str] = {}
        self.settings: dict[str, dict[str, str]] = {}
        """Namespace (``global``, ``system``, ``secure``) → name → value."""
        self.packages: dict[str, Package] = {}
        self.install_sessions: dict[int, InstallSession] = {}
        self.session_numbers = itertools.count(1)
        self.before_airplane = (radios.wifi, radios.bluetooth)
        """Whether WiFi and Bluetooth were on when airplane mode was last switched on."""
        self.allowed_network_types = 0b11001110101111111111
        """Mobile network types that the user allows: bits of ``TelephonyManager.NETWORK_TYPE_BITMASK_*``."""
        self.doze_exempt: set[str] = set()
        self.doze_enabled = True
        self.awake = True
        self.locked = False
        self.idle_forced = False
        self.size_override: tuple[int, int] | None = None
        self.density_override: int | None = None
        self.bluetooth_name = model.model
        self.booted_at = time.time()
        self.clock_offset_s = 0.0
        """Time by which the phone's clock is ahead of this machine's clock, s."""
        self.selinux_permissive = False
        self.multipath: dict[str, str] = {}
        """Interface → its use by the out-of-tree kernel of Multipath TCP: ``on``, ``off`` or ``backup``."""
        self._uids = itertools.count(FIRST_APP_UID)
        for package in model.packages:
            self.add_package(package.installed())
        for info in screen.installed():
            self.add_package(info)
        self.begin_boot()

    def begin_boot(self) -> None:
        """Reset that part of the state which does not survive a boot."""
        self.booted_at = time.time()
        persistent = {name: value for name, value in self.properties.items() if name.startswith("persist.")}
        self.properties = {**boot_properties(self), **persistent}
        if not self.settings:
            self.settings = first_settings(self)
        self.awake, self.locked, self.idle_forced = True, False, False
        self.adb_root = self.selinux_permissive = False
        self.multipath.clear()
        self.radios.wifi_up = self.radios.data_up = False
        self.screen.reboot()
        self.log.clear()

    def add_package(self, info: InstalledPackage) -> Package:
        """Install an app. If it is installed, update it to the version in `info`. Return the installed app."""
        if old := self.packages.get(info.name):
            old.info = info
            old.updated_at = time.time()
            return old
        package = Package(info, next(self._uids))
        self.packages[info.name] = package
        return package

    def update_package(self, name: str, version: str, version_code: int | None = None) -> Package:
        """Change the version of an installed app. Return the app. Raises KeyError if the app is not installed.

        The default of `version_code` is the old one plus 1.
        """
        package = self.packages[name]
        code = version_code if version_code is not None else package.info.version_code + 1
        package.info = replace(package.info, version=version, version_code=code)
        package.updated_at = time.time()
        return package

    def now(self) -> float:
        """Return the unix time that the phone's clock shows, s."""
        return time.time() + self.clock_offset_s

    @property
    def uptime_s(self) -> float:
        """Return the time since the last boot, s."""
        return time.time() - self.booted_at

    @property
    def abi(self) -> str:
        """Return Android's name for the ABI of the phone's programs, which is that of this machine."""
        return {"x86_64": "x86_64", "aarch64": "arm64-v8a"}.get(os.uname().machine, os.uname().machine)
