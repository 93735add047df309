"""Define the `Phone` protocol; translate a phone's interface names in log records into mplab's names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, cast

from mplab.base.machine import CommandResult, Machine


@dataclass(frozen=True)
class PhoneIdentity:
    """Name, model, system version and kernel version of a phone, for the manifest."""

    name: str
    model: str
    os: str
    kernel: str


class Phone(Machine, Protocol):
    """A phone with two interfaces, ``wlan0`` and ``rmnet0``."""

    @property
    def interfaces(self) -> Mapping[str, str]:
        """Interface name → IPv4 address."""

    @property
    def devices(self) -> Mapping[str, str]:
        """Interface name → the phone's own name of the interface, e.g. ``rmnet_data2``."""

    def identity(self) -> PhoneIdentity:
        """Return name, model, system and kernel of the phone."""

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command on the phone and wait for it.

        Raises:
            DeviceError: the command could not be started, took longer than `timeout_s` or, with `check`, had an exit
                code other than 0.
        """

    def keep(self, name: str, text: str) -> str:
        """Write `text` to a file on the phone that only root can read; return its path.

        The file is deleted when the phone is released.
        """

    def push(self, source: Path, target: str) -> None:
        """Copy a host file to the phone."""

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from the phone to the host."""

    def ip(self, *commands: str) -> None:
        """Run ``ip`` commands as one batch (routes, rules, MPTCP endpoints).

        Raises:
            DeviceError: a command failed.
        """

    def prefer(self, interface: str) -> None:
        """Make an interface the default route of the phone; repeated calls are allowed.

        Raises:
            DeviceError: the interface has no default route.
        """

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set kernel parameters: ``{"net.mptcp.enabled": 1}``."""

    def counters(self) -> Mapping[str, int]:
        """Return counters of kernel and interfaces: ``"TcpExt.TCPTimeouts"``, …, ``"wlan0.rx_bytes"``, …

        MPTCP counters have names such as ``"MPTcpExt.MPCapableSYNTX"``.
        """


_Record = TypeVar("_Record", bound=Mapping[str, object])


def by_our_names(record: _Record, devices: Mapping[str, str]) -> _Record:
    """Return a copy of an `mpflex` record (log line, or result of a check) with mplab's interface names.

    Args:
        record: record with the phone's names, as the program wrote it; not changed.
        devices: mplab's interface name → the phone's name of the interface; see `Phone.devices`.
    """
    ours = {device: name for name, device in devices.items()}
    translated: dict[str, object] = dict(record)
    for key in ("interface", "device"):
        if isinstance(value := translated.get(key), str):
            translated[key] = ours.get(value, value)
    if isinstance(paths := translated.get("paths"), list):
        translated["paths"] = [
            by_our_names(path, devices) if isinstance(path, dict) else ours.get(path, path) for path in paths
        ]
    return cast("_Record", translated)
