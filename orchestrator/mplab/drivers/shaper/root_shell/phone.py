"""Hold a rooted phone during a run; nothing is installed on the phone."""

from collections.abc import Sequence

from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.root_shell.settings import PhoneShellFile
from mplab.drivers.shaper.tc.linux import RootedPhone
from mplab.drivers.shaper.tc.shell import Shell


class ShapingPhone(RootedPhone):
    """Phone with a root shell in the lab file. The phone is held while the context is entered.

    Args:
        label: name in messages: ``phone phone-1``.
        settings: key `root_shell` of the phone in the lab file.
        shell: root shell on the phone, not yet connected.
        interfaces: interfaces of the phone to shape.
        owner: owner of the hold.
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
