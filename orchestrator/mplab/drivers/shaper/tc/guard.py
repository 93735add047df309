"""Who holds a router, server or phone, and the dead-man's switch there.

`router-configs/openwrt/mplab-guard` is one shell script with two uses: there it watches over the host's heartbeat;
sent through a shell it holds the place and takes changes back. Both do the same to the same files.
"""

import re
from dataclasses import asdict, dataclass

from mplab.base.machine import CommandResult
from mplab.base.programs import CHECKOUT
from mplab.drivers.shaper.tc.shell import Shell, quote

SCRIPT = CHECKOUT / "router-configs" / "openwrt" / "mplab-guard"
NOT_OURS = 3
"""Exit code: it is not, or no longer, held by this owner."""
NOT_WRITABLE = 4
"""Exit code: notes cannot be written there."""
STARTED_AGAIN = "started again"
"""Output of ``beat`` when the installed watch had died."""
WAIT = "wait for it, or run 'mplab router restore'"
"""What to do when somebody else holds a place."""


@dataclass(frozen=True)
class Holder:
    """Who holds a place.

    Attributes:
        owner: or "".
        silent_s: since when the owner was not heard.
    """

    owner: str = ""
    silent_s: int = 0

    def to_json(self) -> dict[str, object]:
        """For ``--json``."""
        return asdict(self)

    def __str__(self) -> str:
        """``held by …, last heard 3 s ago``."""
        return f"held by {self.owner}, last heard {self.silent_s} s ago" if self.owner else "held by nobody"


def call(shell: Shell, state: str, action: str, *arguments: str, check: bool = True) -> CommandResult:
    """Run the guard's script: ``take``, ``beat``, ``restore``, ``status``; `state` is the folder of its notes."""
    text = f"MPLAB_DIR={quote(state)}\n{SCRIPT.read_text(encoding='utf-8')}"
    return shell.script(text, action, *arguments, check=check)


def holder(shell: Shell, state: str) -> Holder:
    """Who holds it now."""
    status = dict(re.findall(r"^(\w+)=(.*)$", call(shell, state, "status").stdout, re.MULTILINE))
    return Holder(status.get("owner", ""), int(status.get("silent_s", 0)))
