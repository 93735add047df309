"""A Linux server that is held by this run."""

from collections.abc import Sequence

from mplab.drivers.shaper.linux.settings import ServerFile
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.linux import LinuxHost
from mplab.drivers.shaper.tc.shell import Shell


class LinuxServer(LinuxHost):
    """A server for as long as its context: nobody else may shape it meanwhile.

    Args:
        label: for messages: ``server proxy``.
        settings: of the lab file.
        shell: on it, not yet connected.
        interfaces: of the server, that will be shaped; default: the one of `settings`.
        owner: in whose name it is held.
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
