"""Read who holds a router, server or phone, and run the script of its dead-man's switch.

The shell script `router-configs/openwrt/mplab-guard` has two uses. Running on the machine, it is the dead-man's switch:
it undoes all changes when the heartbeat of this host stops. Sent through a shell, it takes and releases the hold. Both
uses share the same files on the machine.
"""

import re
from dataclasses import asdict, dataclass

from mplab.base.machine import CommandResult
from mplab.base.programs import CHECKOUT
from mplab.drivers.shaper.tc.shell import Shell, quote

SCRIPT = CHECKOUT / "router-configs" / "openwrt" / "mplab-guard"
NOT_OURS = 3
"""Exit code: the given owner does not hold the machine (any more)."""
NOT_WRITABLE = 4
"""Exit code: the script cannot write its files on the machine."""
STARTED_AGAIN = "started again"
"""Output of the action ``beat`` when the dead-man's switch had died and was started again."""
WAIT = "wait for it, or run 'mplab router restore'"
"""Remedy when another owner holds a machine."""


@dataclass(frozen=True)
class Holder:
    """Holder of a machine.

    Attributes:
        owner: name of the hold (`Owner.token`); "": no one holds the machine.
        silent_s: time since the owner's last heartbeat, s; 0 without owner.
    """

    owner: str = ""
    silent_s: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the fields for ``--json``."""
        return asdict(self)

    def __str__(self) -> str:
        """Return ``held by …, last heard 3 s ago``."""
        return f"held by {self.owner}, last heard {self.silent_s} s ago" if self.owner else "held by nobody"


def call(shell: Shell, state: str, action: str, *arguments: str, check: bool = True) -> CommandResult:
    """Run one action of the guard's script: ``take``, ``beat``, ``restore`` or ``status``.

    Args:
        shell: root shell on the machine.
        state: folder of the script's files on the machine.
        action: the action.
        arguments: arguments of the action.
        check: raise PlaceError when the script fails.

    Raises:
        PlaceError: the connection was lost or, with `check`, the script failed.
    """
    text = f"MPLAB_DIR={quote(state)}\n{SCRIPT.read_text(encoding='utf-8')}"
    return shell.script(text, action, *arguments, check=check)


def holder(shell: Shell, state: str) -> Holder:
    """Return the current holder. Raises PlaceError when the script fails."""
    status = dict(re.findall(r"^(\w+)=(.*)$", call(shell, state, "status").stdout, re.MULTILINE))
    return Holder(status.get("owner", ""), int(status.get("silent_s", 0)))
