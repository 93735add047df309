"""Read phone files. A phone file describes an emulated phone at power-on."""

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from mplab.base.errors import InputError
from mplab.base.suggest import show, unknown
from mplab.device.screen.protocol import InstalledPackage
from mplab.format.units import SizeBytes
from mplab.userfiles.strict.check import Checker, check_kind
from mplab.userfiles.strict.yaml import load_yaml

PHONES_DIR = Path(__file__).resolve().parents[1] / "phones"
"""Folder of the phone files that come with mplab."""

_SERIAL = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+|android")
_MPTCP = re.compile(r"none|upstream|out-of-tree 0\.(8[0-9]|9[0-9])")

SDK = {10: 29, 11: 30, 12: 31, 13: 33, 14: 34, 15: 35, 16: 36}
"""Android version → API level."""


def _pattern(pattern: re.Pattern[str], kind: str, example: str) -> BeforeValidator:
    def parse(found: object) -> str:
        if isinstance(found, str) and pattern.fullmatch(found):
            return found
        raise ValueError(f"{kind} {show(found)}: like {example}")

    return BeforeValidator(parse)


Serial = Annotated[str, _pattern(_SERIAL, "serial", "'EMU13A0001'")]
PackageName = Annotated[str, _pattern(_PACKAGE, "package", "'com.dropbox.android'")]
Mptcp = Annotated[str, _pattern(_MPTCP, "mptcp", "'none', 'upstream' or 'out-of-tree 0.95'")]


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScreenFile(_File):
    """The display of a phone, as its phone file describes it."""

    width: int = Field(1080, ge=240, le=4320, description="Pixels.")
    height: int = Field(2340, ge=320, le=7680, description="Pixels.")
    density: int = Field(420, ge=120, le=640, description="Dots per inch.")


class BatteryFile(_File):
    """The battery of a phone at power-on."""

    level: int = Field(85, ge=0, le=100, description="Percent.")
    temperature: float = Field(28.5, ge=-20, le=80, description="Degrees Celsius.")
    plugged: Literal["usb", "ac", "wireless", "no"] = Field("usb", description="Charger.")


class SimFile(_File):
    """One SIM of a phone, and the mobile network that it uses."""

    operator: str = Field("Lab Mobile", min_length=1, max_length=32, description="Name of the network.")
    numeric: Annotated[str, _pattern(re.compile(r"[0-9]{5,6}"), "numeric", "'00101'")] = Field(
        "00101", description="Country and network, MCC and MNC."
    )
    state: Literal["LOADED", "PIN_REQUIRED", "ABSENT"] = Field("LOADED", description="State of the card.")
    network: Literal["NR", "LTE", "HSPA", "UMTS", "EDGE", "GPRS"] = Field("LTE", description="Radio technology.")
    signal_dbm: int = Field(-95, ge=-140, le=-40, description="Reference signal received power.")
    cell: int = Field(123456, ge=0, le=268435455, description="Identity of the cell.")


class WifiFile(_File):
    """The WiFi network that a phone joins."""

    ssid: str = Field("mplab", min_length=1, max_length=32, description="Name of the network.")
    bssid: str = Field("02:6d:70:00:00:04", description="Address of its access point.")
    frequency_mhz: int = Field(5180, ge=2400, le=7200, description="Frequency of its channel.")
    rssi_dbm: int = Field(-52, ge=-100, le=-10, description="Signal strength.")
    link_mbps: int = Field(433, ge=1, le=10000, description="Rate of the radio link.")


class RadiosFile(_File):
    """The switches of a phone's radios at power-on; True: on."""

    wifi: bool = True
    data: bool = True
    airplane: bool = False
    bluetooth: bool = False


class PackageFile(_File):
    """Entry of a phone file: an app that a phone has when it is switched on."""

    name: PackageName
    version: str = Field("1.0", min_length=1, description="versionName.")
    version_code: int = Field(1, ge=1, description="versionCode.")
    activity: str = Field("", description="Activity that its icon starts; empty: it has no icon.")
    system: bool = Field(False, description="Part of the system image.")

    def installed(self) -> InstalledPackage:
        """Return the app as an `InstalledPackage`."""
        return InstalledPackage(self.name, self.version, self.version_code, self.activity, self.system)


def _screen() -> ScreenFile:
    return ScreenFile.model_validate({})


def _battery() -> BatteryFile:
    return BatteryFile.model_validate({})


def _sims() -> list[SimFile]:
    return [SimFile.model_validate({})]


def _wifi() -> WifiFile:
    return WifiFile.model_validate({})


class PhoneModel(_File):
    """Content of a phone file: an emulated phone at power-on."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="mplab phone")

    mplab: Literal[1] = Field(description="Format of this file.")
    model: str = Field(min_length=1, max_length=64, description="Name for users, like Pixel 7.")
    manufacturer: str = Field("Google", description="Manufacturer.")
    product: Annotated[str, _pattern(re.compile(r"[A-Za-z0-9_]{1,32}"), "product", "'panther'")] = Field(
        description="Code name."
    )
    android: Literal[10, 11, 12, 13, 14, 15, 16] = Field(description="Version.")
    security_patch: str = Field("2024-01-05", description="Level of its security patches.")
    build: str = Field("MPLAB.1", description="Build id.")
    serial: Serial = Field(description="Serial number.")
    root: Literal["none", "su", "adb"] = Field(
        "none", description="Way to root. su: the command su; adb: also 'adb root'."
    )
    kernel: str = Field("5.10.157-android13-4", description="Output of uname -r.")
    mptcp: Mptcp = Field("none", description="Multipath TCP of its kernel.")
    storage: SizeBytes = Field(4_000_000_000, description="Size of /data.")
    screen: ScreenFile = Field(default_factory=_screen)
    battery: BatteryFile = Field(default_factory=_battery)
    sims: list[SimFile] = Field(default_factory=_sims, max_length=2)
    wifi: WifiFile | None = Field(default_factory=_wifi)
    radios: RadiosFile = Field(default_factory=RadiosFile)
    radio_delay_s: float = Field(0.5, ge=0, le=60, description="Seconds from a radio's switch to its interface.")
    boot_s: float = Field(2.0, ge=0, le=300, description="Seconds of a reboot.")
    packages: list[PackageFile] = Field(default_factory=list)
    files: dict[str, str] = Field(default_factory=dict, description="Path below /sdcard or /data → text.")
    settings: dict[Literal["global", "system", "secure"], dict[str, str]] = Field(default_factory=dict)
    properties: dict[str, str] = Field(
        default_factory=dict, description="Properties in addition to those that follow from the other keys."
    )

    @model_validator(mode="after")
    def _paths(self) -> Self:
        for path in self.files:
            if not re.fullmatch(r"/(sdcard|data)(/[^/\0]+)+", path) or ".." in path.split("/"):
                raise ValueError(f"file {show(path)}: a path below /sdcard or /data is needed")
        return self

    @property
    def mptcp_kind(self) -> Literal["none", "upstream", "out-of-tree"]:
        """Return the kind of Multipath TCP of the phone's kernel: `mptcp` without the version."""
        return "out-of-tree" if self.mptcp.startswith("out-of-tree") else "none" if self.mptcp == "none" else "upstream"

    @property
    def sdk(self) -> int:
        """Return the API level of the phone's Android version."""
        return SDK[self.android]


def phone_names() -> list[str]:
    """Return the names of the phones that come with mplab, sorted."""
    return sorted(path.stem for path in PHONES_DIR.glob("*.yaml"))


def load_phone(name_or_file: str) -> PhoneModel:
    """Load a phone file: one that comes with mplab by its name, or another by its path.

    Raises:
        InputError: there is no such phone, or its file is wrong. The message lists all problems with their lines.
    """
    if "/" not in name_or_file and not name_or_file.endswith((".yaml", ".yml")):
        if name_or_file not in phone_names():
            raise InputError(unknown("phone", name_or_file, phone_names()))
        path = PHONES_DIR / f"{name_or_file}.yaml"
    else:
        path = Path(name_or_file)
    document = load_yaml(path)
    check_kind(document, "phone")
    checker = Checker(document)
    phone = checker.model(PhoneModel, document.data)
    checker.raise_problems()
    assert phone is not None  # noqa: S101 - raise_problems has raised otherwise
    return phone
