"""Hold the state of a phone while it is on."""

import itertools
import os
import secrets
import time
from dataclasses import dataclass, field, replace

from mplab.device.android.defaults import boot_properties, first_settings
from mplab.device.android.log import LogBuffer
from mplab.device.android.model import PhoneModel
from mplab.device.screen.protocol import InstalledPackage, Screen

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

    def __init__(self, model: PhoneModel, screen: Screen) -> None:
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
        self.boot_id = ""
        self._uids = itertools.count(FIRST_APP_UID)
        for package in model.packages:
            self.add_package(package.installed())
        for info in screen.installed():
            self.add_package(info)
        self.begin_boot()

    def begin_boot(self) -> None:
        """Reset the state that does not survive a boot."""
        self.booted_at = time.time()
        self.boot_id = secrets.token_hex(8)
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
        if found := self.packages.get(info.name):
            found.info = info
            found.updated_at = time.time()
            return found
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
