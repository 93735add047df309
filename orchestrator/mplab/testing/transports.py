"""Test a transport without a lab: record its changes on a phone, and find those that it does not undo."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from mplab.base.machine import CommandResult
from mplab.base.paths import RMNET, WLAN
from mplab.base.programs import Program
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.transport import Transport, transport_named

ADDRESSES: Mapping[str, str] = {WLAN: "10.64.1.2", RMNET: "10.64.2.2"}
"""Addresses of the phone, by interface."""
_LINK_DEFAULTS: Mapping[str, str] = {"mtu": "1500"}
_REMOVE = ("del", "delete")


class RecordingPhone:
    """A phone with the methods of `Phone` that transports use. It executes nothing, but records all changes.

    Attributes:
        ip_commands: ``ip`` commands that the transport gave, in order.
        sysctls: kernel parameters that the transport set, with their values.
        default: current interface of the default route.
    """

    name = "phone"
    interfaces = ADDRESSES
    devices: Mapping[str, str] = {name: name for name in ADDRESSES}

    def __init__(self) -> None:
        self.ip_commands: list[str] = []
        self.sysctls: dict[str, object] = {}
        self.default = WLAN
        self._added: Counter[str] = Counter()
        self._links: dict[tuple[str, str], str] = {}

    def ip(self, *commands: str) -> None:
        """Record ``ip`` commands. An object or link attribute counts as added until another command removes it."""
        for command in commands:
            self.ip_commands.append(command)
            words = command.split()
            if "add" in words:
                self._added[_without(words, "add")] += 1
            elif removing := next((word for word in _REMOVE if word in words), ""):
                self._added -= Counter([_without(words, removing)])
            elif "flush" in words:
                kind = " ".join(words[: words.index("flush")])
                self._added = Counter({item: n for item, n in self._added.items() if not item.startswith(kind)})
            elif words[:2] == ["link", "set"]:
                device, *settings = words[3:] if words[2] == "dev" else words[2:]
                self._links |= {(device, key): value for key, value in zip(settings[::2], settings[1::2], strict=False)}

    def prefer(self, interface: str) -> None:
        """Record that the default route now uses `interface`."""
        self.default = interface

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Record the values of kernel parameters (sysctl)."""
        self.sysctls |= values

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Do nothing, and return the result of a command that succeeds without output."""
        return CommandResult(0, "", "")

    def program(self, program: Program) -> str:
        """Return the command of a program on the phone: its name."""
        return program.name

    def keep(self, name: str, text: str) -> str:
        """Return the path that the phone's file `name` would have; no file is written."""
        return str(Path("/kept") / name)

    def left(self) -> list[str]:
        """Return the changes that were not undone, as text.

        Kernel parameters are left out, because every run sets them again.
        """
        route = [f"default route over {self.default}"] if self.default != WLAN else []
        links = [
            f"link {device}: {key} {value}"
            for (device, key), value in self._links.items()
            if value != _LINK_DEFAULTS.get(key, value)
        ]
        return [*route, *links, *self._added]


def transport_on_phone(name: str) -> Transport:
    """Return a registered transport for a `RecordingPhone`. `name` may include a variant: ``mpflex:minrtt``."""
    return transport_named(name, ADDRESSES)


def left_by(transport: Transport) -> list[str]:
    """Set up a transport on a `RecordingPhone` and undo the set-up. Return the changes that were not undone, as text.

    A correct transport leaves none.
    """
    phone = RecordingPhone()
    with UndoStack() as undo:
        transport.setup(cast("Phone", phone), undo)
    return phone.left()


def _without(words: Sequence[str], verb: str) -> str:
    return " ".join(word for word in words if word != verb)
