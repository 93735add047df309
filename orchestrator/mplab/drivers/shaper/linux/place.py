"""Hold a Linux server during a run."""

from collections.abc import Sequence

from mplab.drivers.shaper.linux.settings import ServerFile
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.linux import LinuxHost
from mplab.drivers.shaper.tc.shell import Shell


class LinuxServer(LinuxHost):
    """Server that this process holds while the context is entered: no other process can shape it.

    Args:
        label: name in messages: ``server proxy``.
        settings: entry in the lab file.
        shell: root shell on the server, not yet connected.
        interfaces: interfaces of the server to shape; default: the one in `settings`.
        owner: owner of the hold.
    """

    def __init__(
        self, label: str, settings: ServerFile, shell: Shell, *, owner: Owner, interfaces: Sequence[str] = ()
    ) -> None:
        super().__init__(
            label,
            shell,
            interface=settings.interface,
            interfaces=interfaces,
            dead_man_s=settings.dead_man,
            restore_command=restore_argv(label, settings.driver, settings),
            owner=owner,
        )
