"""Hold the state of a phone while it is on, and its log."""

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
    """A line of the log.

    Attributes:
        number: position since the device was made, from 1.
        time: Unix time, seconds.
        level: ``V``, ``D``, ``I``, ``W``, ``E``, ``F``.
    """

    number: int
    time: float
    pid: int
    level: str
    tag: str
    text: str


class LogBuffer:
    """A buffer of the newest lines; readers can wait for more."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=_MOST_LINES)
        self._count = 0
        self._more = asyncio.Event()

    def add(self, tag: str, text: str, *, level: str = "I", pid: int = 1337) -> None:
        """Append lines."""
        for part in text.splitlines() or [""]:
            self._count += 1
            self._lines.append(LogLine(self._count, time.time(), pid, level, tag, part))
        self._more.set()

    def clear(self) -> None:
        """Remove all lines."""
        self._lines.clear()

    def lines(self, after: int = 0) -> list[LogLine]:
        """Return the lines after line number `after`."""
        return [line for line in self._lines if line.number > after]

    @property
    def last(self) -> int:
        """Return the number of the last line."""
        return self._count

    async def wait(self, after: int) -> None:
        """Wait until a line after number `after` has been written."""
        while self._count <= after:
            self._more.clear()
            await self._more.wait()


FIRST_APP_UID = 10100


@dataclass
class Package:
    """An app on the phone, and the changes that commands have made to it.

    Attributes:
        granted: names of granted permissions; ``*``: all were granted at the installation.
    """

    info: InstalledPackage
    uid: int
    enabled: bool = True
    chosen: bool = False
    """Enabled by a command, not by its manifest (``COMPONENT_ENABLED_STATE_ENABLED``)."""
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
    """The battery in the terms of ``dumpsys battery``."""

    level: int
    temperature_c: float
    plugged: str
    """One of ``usb``, ``ac``, ``wireless``, ``no``."""


@dataclass
class Radios:
    """Radios that are switched on, and interfaces that are up."""

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
    """An installation of several APKs that is not yet committed."""

    options: tuple[str, ...]
    apks: list[bytes] = field(default_factory=list)


class State:
    """All state that commands read and change.

    Args:
        model: the phone at power-on.
        screen: its screen.
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
        """Value of ``THERMAL_STATUS``: 0 none … 3 severe … 6 shutdown."""
        radios = model.radios
        self.radios = Radios(radios.wifi, radios.data, radios.airplane, radios.bluetooth)
        self.properties: dict[str, str] = {}
        self.settings: dict[str, dict[str, str]] = {}
        """Namespace (``global``, ``system``, ``secure``) → name → value."""
        self.packages: dict[str, Package] = {}
        self.install_sessions: dict[int, InstallSession] = {}
        self.session_numbers = itertools.count(1)
        self.before_airplane = (radios.wifi, radios.bluetooth)
        """State of WiFi and Bluetooth when airplane mode was switched on."""
        self.allowed_network_types = 0b11001110101111111111
        """Bits of ``TelephonyManager.NETWORK_TYPE_BITMASK_*``."""
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
        """Offset of the phone's clock from this machine's clock, s; positive: the phone's clock is ahead."""
        self.selinux_permissive = False
        self.multipath: dict[str, str] = {}
        """Interface → ``on``, ``off`` or ``backup`` in the out-of-tree kernel."""
        self._uids = itertools.count(FIRST_APP_UID)
        for package in model.packages:
            self.add_package(package.installed())
        for info in screen.installed():
            self.add_package(info)
        self.begin_boot()

    def begin_boot(self) -> None:
        """Reset the state that does not survive a boot."""
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
        """Install an app, or update it to another version."""
        if old := self.packages.get(info.name):
            old.info = info
            old.updated_at = time.time()
            return old
        package = Package(info, next(self._uids))
        self.packages[info.name] = package
        return package

    def update_package(self, name: str, version: str, version_code: int | None = None) -> Package:
        """Update an app to another version. Raises KeyError if it is not installed."""
        package = self.packages[name]
        code = version_code if version_code is not None else package.info.version_code + 1
        package.info = replace(package.info, version=version, version_code=code)
        package.updated_at = time.time()
        return package

    def now(self) -> float:
        """Return the Unix time of the phone's clock."""
        return time.time() + self.clock_offset_s

    @property
    def uptime_s(self) -> float:
        """Return the time since the last boot, seconds."""
        return time.time() - self.booted_at

    @property
    def abi(self) -> str:
        """Return the ABI of the phone's programs: that of this machine."""
        return {"x86_64": "x86_64", "aarch64": "arm64-v8a"}.get(os.uname().machine, os.uname().machine)
