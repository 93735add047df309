"""A rooted phone that is held by this run; nothing is installed there."""

from collections.abc import Sequence
from typing import ClassVar

from mplab.drivers.shaper.linux.place import LinuxPlace, check_root
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.root_shell.driver import DRIVER, STATE, PhoneShellFile


class RootedPhone(LinuxPlace):
    """A rooted phone that shapes itself, however its root shell is had.

    Its notes are where `adb` puts things, since it has no /run. Offloads are switched off where it has `ethtool`.
    """

    state_directory: ClassVar[str] = STATE

    def _check_ready(self) -> None:
        check_root(self.shell)


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
            DRIVER.shell(full_name, settings),
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(full_name, "root-shell", settings),
            owner=owner,
        )
