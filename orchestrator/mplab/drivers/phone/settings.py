"""Settings of Android phones in a lab file; adb controls them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mplab.format.names import pattern_schema, text_like
from mplab.format.units import DurationS, SizeBytes
from mplab.userfiles.experiments.app import AppOf, UiName
from mplab.userfiles.labs.lab import PhoneFile
from mplab.userfiles.labs.machine_fields import InterfaceName

_SERIAL = re.compile(r"[A-Za-z0-9._:\[\]-]{1,128}")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+")


Serial = Annotated[
    str,
    text_like(_SERIAL, "serial", "as 'adb devices' shows it, in quotes: like '0A1B2C3D' or '192.168.1.23:5555'"),
    pattern_schema(_SERIAL),
]
PackageName = Annotated[str, text_like(_PACKAGE, "package", "like 'com.dropbox.android'"), pattern_schema(_PACKAGE)]


PermissionName = Annotated[
    str, text_like(_PACKAGE, "permission", "like 'android.permission.CAMERA'"), pattern_schema(_PACKAGE)
]


def _parse_apk(value: object) -> object:
    if isinstance(value, str) and (value.startswith(("/", "~")) and value.endswith(".apk")):
        return value
    raise ValueError(f"apk {value!r}: a path that begins with '/' or '~' and ends with '.apk' is needed")


Apk = Annotated[str, BeforeValidator(_parse_apk)]


class AdbInterfacesFile(BaseModel):
    """Interface names of the phone; names that are not set are detected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wifi: InterfaceName | None = Field(None, description="Interface of the WiFi path, such as wlan0.")
    lte: InterfaceName | None = Field(None, description="Interface of the cellular path, such as rmnet_data2.")


class ReadyFile(BaseModel):
    """Thresholds that a phone must meet before a cell; missing keys have defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    battery: int = Field(20, ge=0, le=100, description="Minimum charge, percent.")
    temperature: float = Field(42.0, ge=0, le=60, description="Maximum temperature of the battery, degrees Celsius.")
    thermal_status: int = Field(
        1, ge=0, le=6, description="Maximum: 0 none, 1 light, 2 moderate, 3 severe. Android throttles from 2 on."
    )
    storage: SizeBytes = Field(200_000_000, description="Minimum free space in /data.")
    sim: bool = Field(True, description="A SIM must be ready.")
    interfaces: bool = Field(True, description="Both interfaces must have an address.")
    idle_rate: int = Field(100, ge=0, description="Maximum traffic of the apps while no scenario runs, kbit/s.")
    idle_for: DurationS = Field(1.0, description="Time for which this traffic is measured; 0 s: not measured.")
    clock_offset: DurationS = Field(60.0, description="Maximum offset of the clock, which is always measured.")


class InstallFile(BaseModel):
    """Installation source of an app, and permissions to grant to it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    apk: Apk | None = Field(None, description="Absolute path of the file to install when the app is missing.")
    grant: list[PermissionName] = Field(default_factory=list, description="Permissions of Android to grant.")


class AndroidPhoneFile(PhoneFile):
    """A phone that runs Android apps and is controlled by adb."""

    ui: UiName | None = Field(
        None,
        description="Driver of an Android phone's screen; default: uiautomator2.",
    )
    app_of: AppOf | None = Field(None, description="Scenario → Android app of its app.yaml; default: the first one.")
    root: Literal["auto", "su", "adb", "none"] | None = Field(
        None, description="Way to root: the first that works (auto), su, 'adb root', or none: do not use root."
    )
    ready: ReadyFile | None = Field(None, description="Conditions that it must meet before a cell.")
    install: dict[PackageName, InstallFile] | None = Field(
        None, description="Package → how a run installs the app and grants permissions to it, until its end."
    )
    record_screen: bool | None = Field(
        None, description="Film its screen in every cell; default: no. It costs the phone processor time."
    )
    apps: dict[PackageName, str] | None = Field(None, description="Required apps: package → version.")

    @property
    def unrooted(self) -> bool:
        """True when root must not be used. Only apps that can use a proxy then send their traffic to the agent."""
        return self.root == "none"

    @property
    def chosen_apps(self) -> Mapping[str, str]:
        """Scenario → Android app to use; scenarios that are not listed use the first app in their ``app.yaml``."""
        return self.app_of or {}


class AdbPhoneFile(AndroidPhoneFile):
    """A real phone connected by adb."""

    serial: Serial | None = Field(
        None, description="As 'adb devices' shows it, or HOST:PORT; default: that of the only phone."
    )
    interfaces: AdbInterfacesFile | None = Field(None, description="Its interfaces; default: detected.")

    def resource(self, name: str) -> str:
        """Return the name of the lock on this phone: ``phone SERIAL`` or, without a serial, ``phone`` and `name`."""
        return f"phone {self.serial or name}"
