"""A Linux server that is held by this run; nothing is installed there.

Packets that the kernel has put together (TSO and GSO of what it sends itself, GRO of what it receives) would be delayed
and lost as one: `ethtool` switches that off at the interface while it is held.
"""

from collections.abc import Sequence
from typing import ClassVar

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.linux.driver import DRIVER, ServerFile
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.place import Place
from mplab.drivers.shaper.tc.shell import Shell


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

    state_directory: ClassVar[str] = DRIVER.state_directory

    def __init__(self, name: str, settings: ServerFile, *, owner: Owner, interfaces: Sequence[str] = ()) -> None:
        full_name = f"server {name}"
        super().__init__(
            full_name,
            DRIVER.shell(full_name, settings),
            interface=settings.interface,
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(full_name, "linux", settings),
            owner=owner,
        )

    def _check_ready(self) -> None:
        check_root(self.shell)
        if self.shell.script("command -v ethtool", check=False).exit_code != 0:
            raise LabNotReadyError(
                f"{self.name}: no ethtool on it, which keeps the kernel from putting packets together: install the "
                "package ethtool"
            )


def check_root(shell: Shell) -> None:
    """Raise LabNotReadyError when a shell is not one of root."""
    uid = shell.script("id -u").stdout.strip()
    if uid != "0":
        raise LabNotReadyError(f"{shell.name} ({shell.where}): user {uid} is not root, who alone may shape")
