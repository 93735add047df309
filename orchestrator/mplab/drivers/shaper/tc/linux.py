"""A machine with Linux that is held by this run; nothing is installed there.

Packets that the kernel has put together (TSO and GSO of what it sends itself, GRO of what it receives) would be delayed
and lost as one: `ethtool` switches that off at the interface while it is held.
"""

from typing import ClassVar

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.tc.place import Place
from mplab.drivers.shaper.tc.shell import Shell

PHONE_STATE = "/data/local/tmp/mplab"
"""Where `adb` puts things, since a phone has no /run."""


class LinuxPlace(Place):
    """A place whose kernel puts no packets together while it is held."""

    def _prepare_held(self) -> None:
        self._switch_offloads_off(self._interfaces)


class LinuxHost(LinuxPlace):
    """A computer; it must have `ethtool`."""

    state_directory: ClassVar[str] = "/run/mplab"

    def _check_ready(self) -> None:
        check_root(self.shell)
        if self.shell.script("command -v ethtool", check=False).exit_code != 0:
            raise LabNotReadyError(
                f"{self.name}: no ethtool on it, which keeps the kernel from putting packets together: install the "
                "package ethtool"
            )


class RootedPhone(LinuxPlace):
    """A rooted phone that shapes itself, however its root shell is had.

    Offloads are switched off where it has `ethtool`.
    """

    state_directory: ClassVar[str] = PHONE_STATE

    def _check_ready(self) -> None:
        check_root(self.shell)


def check_root(shell: Shell) -> None:
    """Raise LabNotReadyError when a shell is not one of root."""
    uid = shell.script("id -u").stdout.strip()
    if uid != "0":
        raise LabNotReadyError(f"{shell.name} ({shell.where}): user {uid} is not root, who alone may shape")
