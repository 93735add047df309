"""A Linux server or a rooted phone that is held by this run; nothing is installed there.

Packets that the kernel has put together (TSO and GSO of what it sends itself, GRO of what it receives) would be delayed
and lost as one: `ethtool` switches that off at the interface while it is held.
"""

from collections.abc import Sequence
from typing import ClassVar

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.place import Place, restore_argv
from mplab.drivers.shaper.tc.shell import CommandShell, Shell
from mplab.drivers.shaper.tc.ssh import SshConnection
from mplab.userfiles.lab import PhoneShellFile, ServerFile


class LinuxPlace(Place):
    """A place whose kernel puts no packets together while it is held."""

    def _prepare_held(self) -> None:
        self._switch_offloads_off(self._interfaces)


class LinuxServer(LinuxPlace):
    """A server for as long as its context: nobody else may shape it meanwhile.

    Args:
        name: in the lab file.
        settings: of the lab file.
        interfaces: of the server, that will be shaped; default: the one of `settings`.
        owner: in whose name it is held.
    """

    state_directory: ClassVar[str] = "/run/mplab"

    def __init__(self, name: str, settings: ServerFile, *, owner: Owner, interfaces: Sequence[str] = ()) -> None:
        full_name = f"server {name}"
        super().__init__(
            full_name,
            server_shell(full_name, settings),
            interface=settings.interface,
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(full_name, "server", settings),
            owner=owner,
        )

    def _check_ready(self) -> None:
        _check_root(self.shell)
        if self.shell.script("command -v ethtool", check=False).exit_code != 0:
            raise LabNotReadyError(
                f"{self.name}: no ethtool on it, which keeps the kernel from putting packets together: install the "
                "package ethtool"
            )


class RootedPhone(LinuxPlace):
    """A rooted phone that shapes itself, however its root shell is had.

    Its notes are where `adb` puts things, since it has no /run. Offloads are switched off where it has `ethtool`.
    """

    state_directory: ClassVar[str] = "/data/local/tmp/mplab"

    def _check_ready(self) -> None:
        _check_root(self.shell)


class ShapingPhone(RootedPhone):
    """A phone whose root shell the lab file names, for as long as its context.

    Args:
        name: in the lab file.
        settings: of the lab file.
        interfaces: of the phone, that will be shaped.
        owner: in whose name it is held.
    """

    def __init__(self, name: str, settings: PhoneShellFile, *, owner: Owner, interfaces: Sequence[str]) -> None:
        full_name = f"phone {name}"
        super().__init__(
            full_name,
            phone_shell(full_name, settings),
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(full_name, "phone", settings),
            owner=owner,
        )


def _check_root(shell: Shell) -> None:
    uid = shell.script("id -u").stdout.strip()
    if uid != "0":
        raise LabNotReadyError(f"{shell.name} ({shell.where}): user {uid} is not root, who alone may shape")


def server_shell(name: str, settings: ServerFile) -> Shell:
    """A shell on a server: over SSH, or on this machine."""
    if settings.host:
        return SshConnection(name, settings, sudo=settings.sudo)
    return CommandShell(name, ["sudo", "-n"] if settings.sudo else [], where="this machine")


def phone_shell(name: str, settings: PhoneShellFile) -> Shell:
    """A root shell on a phone."""
    return CommandShell(name, settings.command)
