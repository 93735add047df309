"""Hold a machine with Linux during a run; nothing is installed on the machine.

Packets that the kernel has joined (TSO and GSO on sending, GRO on receiving) would be delayed and lost as one packet.
`ethtool` disables these offloads at the interface while the machine is held.
"""

from typing import ClassVar

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.tc.place import Place
from mplab.drivers.shaper.tc.shell import Shell

PHONE_STATE = "/data/local/tmp/mplab"
"""Folder for the files of a hold on phones: they have no /run, and `adb` can write to this folder."""


class LinuxPlace(Place):
    """Machine whose kernel joins no packets while it is held."""

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
    """A rooted phone that shapes its own paths, with any kind of root shell.

    Offloads are disabled only if it has `ethtool`.
    """

    state_directory: ClassVar[str] = PHONE_STATE

    def _check_ready(self) -> None:
        check_root(self.shell)


def check_root(shell: Shell) -> None:
    """Raise LabNotReadyError when a shell is not a root shell."""
    uid = shell.script("id -u").stdout.strip()
    if uid != "0":
        raise LabNotReadyError(f"{shell.name} ({shell.where}): user {uid} is not root, who alone may shape")
