"""Query the holder of a router, server or phone, and call its dead-man's switch.

`router-configs/openwrt/mplab-guard` is one shell script with two uses. On the machine, it watches the host's heartbeat.
Sent through a shell, it holds the machine and undoes changes. Both uses share the same files.
"""

import re
from dataclasses import asdict, dataclass

from mplab.base.machine import CommandResult
from mplab.base.programs import CHECKOUT
from mplab.drivers.shaper.tc.shell import Shell, quote

SCRIPT = CHECKOUT / "router-configs" / "openwrt" / "mplab-guard"
NOT_OURS = 3
"""Exit code: this owner does not, or no longer, hold the machine."""
NOT_WRITABLE = 4
"""Exit code: notes cannot be written on the machine."""
STARTED_AGAIN = "started again"
"""Output of ``beat`` when the installed switch had died."""
WAIT = "wait for it, or run 'mplab router restore'"
"""Remedy when another owner holds a machine."""


@dataclass(frozen=True)
class Holder:
    """Holder of a machine.

    Attributes:
        owner: name of the hold, or "".
        silent_s: time since the owner's last heartbeat, s.
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
    """Run the guard's script (``take``, ``beat``, ``restore``, ``status``); `state` is the folder of its notes.

    Raises:
        PlaceError: the connection was lost or, with `check`, the script failed.
    """
    text = f"MPLAB_DIR={quote(state)}\n{SCRIPT.read_text(encoding='utf-8')}"
    return shell.script(text, action, *arguments, check=check)


def holder(shell: Shell, state: str) -> Holder:
    """Return the current holder. Raises PlaceError when the script fails."""
    status = dict(re.findall(r"^(\w+)=(.*)$", call(shell, state, "status").stdout, re.MULTILINE))
    return Holder(status.get("owner", ""), int(status.get("silent_s", 0)))
