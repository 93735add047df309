"""A rooted phone that is held by this run; nothing is installed there."""

from collections.abc import Sequence

from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.root_shell.settings import PhoneShellFile
from mplab.drivers.shaper.tc.linux import RootedPhone
from mplab.drivers.shaper.tc.shell import Shell


class ShapingPhone(RootedPhone):
    """A phone whose root shell the lab file names, for as long as its context.

    Args:
        label: for messages: ``phone phone-1``.
        settings: of the lab file.
        shell: root's on it, not yet connected.
        interfaces: of the phone, that will be shaped.
        owner: in whose name it is held.
    """

    def __init__(
        self, label: str, settings: PhoneShellFile, shell: Shell, *, owner: Owner, interfaces: Sequence[str]
    ) -> None:
        super().__init__(
            label,
            shell,
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(label, "root-shell", settings),
            owner=owner,
        )
