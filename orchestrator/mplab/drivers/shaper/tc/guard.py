"""Read who holds a router, server or phone, and run the script of its dead-man's switch.

The shell script `router-configs/openwrt/mplab-guard` has two uses. Running on the machine, it is the dead-man's switch:
it undoes all changes when the heartbeat of this host stops. Sent through a shell, it takes and releases the hold, that
is, the right to shape the machine. Both uses share the same files on the machine.

Lab files may have several names for one machine, with different folders for the files of a hold, but ifb devices and
filter priorities belong to the kernel: two holders of one kernel would remove each other's devices and filters.
Therefore each hold also owns a marker device: an ifb device without traffic. The kernel allows the device's name only
once per network namespace. The hardware address of the device, set when it is made, identifies the owner.
"""

import hashlib
import re
from dataclasses import asdict, dataclass

from mplab.base.machine import CommandResult
from mplab.base.places import ROOT
from mplab.drivers.shaper.tc.shell import Shell, quote

SCRIPT = ROOT / "router-configs" / "openwrt" / "mplab-guard"
NOT_OURS = 3
"""Exit code of the guard script: the given owner does not hold the machine (any more)."""
NOT_WRITABLE = 4
"""Exit code of the guard script: it cannot write its files on the machine."""
STARTED_AGAIN = "started again"
"""Output of the guard script's action ``beat`` when the dead-man's switch had died and was started again."""
WAIT = "wait for it, or run 'mplab router restore'"
"""Remedy in messages when another owner holds a machine."""


@dataclass(frozen=True)
class Holder:
    """Process that holds a machine, as the machine reports it.

    Attributes:
        owner: name of the hold (`Owner.token`): ``run@host:pid:time``; "": no one holds the machine.
        silent_s: time since the owner's last heartbeat, s; 0 without owner.
    """

    owner: str = ""
    silent_s: int = 0

    def to_json(self) -> dict[str, object]:
        """Return the fields as a dictionary for the option ``--json``."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the holder as text: ``held by …, last heard 3 s ago``, or ``held by nobody``."""
        return f"held by {self.owner}, last heard {self.silent_s} s ago" if self.owner else "held by nobody"


def call(shell: Shell, state: str, action: str, *arguments: str, check: bool = True) -> CommandResult:
    """Run the guard script, ``mplab-guard``, on a machine with one action; return the script's result.

    Args:
        shell: root shell on the machine.
        state: folder of the script's files on the machine.
        action: ``take`` (hold the machine), ``beat`` (heartbeat), ``restore`` (undo and release) or ``status``.
        arguments: arguments of the action.
        check: raise MachineError when the script fails.

    Raises:
        MachineError: the connection was lost or, with `check`, the script failed.
    """
    text = f"MPLAB_DIR={quote(state)}\n{SCRIPT.read_text(encoding='utf-8')}"
    return shell.script(text, action, *arguments, check=check)


def holder(shell: Shell, state: str) -> Holder:
    """Return the process that holds a machine now. Raises MachineError when the guard script fails."""
    status = dict(re.findall(r"^(\w+)=(.*)$", call(shell, state, "status").stdout, re.MULTILINE))
    return Holder(status.get("owner", ""), int(status.get("silent_s", 0)))


KERNEL_DEVICE = "mplab-held"
KERNEL_UNDO_NAME = "00-kernel"
"""Name of the undo script that deletes the marker device; it runs last."""
KERNEL_HELD = 78
"""Exit code of `claim_script`: another owner has the marker device; the output names that owner."""

_LONGEST_ALIAS = 255
_FOLDER = f"/sys/class/net/{KERNEL_DEVICE}"
_READ_ADDRESS = f"address=; [ ! -e {_FOLDER} ] || read -r address <{_FOLDER}/address"


def claim_script(owner: str, name: str) -> str:
    """Return a shell script that makes the marker device for `owner`, or keeps the one that `owner` already has.

    The marker device is an ifb device whose hardware address identifies the holder of the kernel. On a kernel without
    ifb, the script makes no device and succeeds; such a machine cannot be shaped anyway.

    Args:
        owner: name of the hold; see `Owner.token`.
        name: name of the machine in the owner's lab file.
    """
    alias = f"{owner} {name}"[:_LONGEST_ALIAS]
    return "\n".join(
        [
            f"ip link add name {KERNEL_DEVICE} address {_address(owner)} type ifb 2>/dev/null",
            f"{_READ_ADDRESS}; if {_is_of(owner)}; then printf '%s' {quote(alias)} >{_FOLDER}/ifalias; return 0; fi",
            f"[ ! -e {_FOLDER} ] || {{ cat {_FOLDER}/ifalias; return {KERNEL_HELD}; }}",
        ]
    )


def release_script(owner: str) -> str:
    """Return a shell script that deletes the marker device (see `claim_script`) if the device belongs to `owner`."""
    return f"{_READ_ADDRESS}; ! {_is_of(owner)} || ip link del {KERNEL_DEVICE}\n"


def kernel_refusal(alias: str, owner: str) -> str:
    """Return the error message for `owner` when another hold has the kernel's marker device.

    The message names the other hold and a remedy.

    Args:
        alias: output of `claim_script`: name of the other hold, and name of the machine in the other lab file.
        owner: name of the hold that was refused.
    """
    other, _, name = alias.strip().partition(" ")
    if _process(other) == _process(owner):
        return f"held by this run already, as {name}: one machine needs one entry in the lab file"
    return f"held by {other}, as {name}: {WAIT}"


def _address(owner: str) -> str:
    """Return the hardware address of the marker device of `owner`: locally administered, derived from `owner`."""
    digits = hashlib.sha256(owner.encode()).hexdigest()
    return ":".join(["02", *(digits[at : at + 2] for at in range(0, 10, 2))])


def _is_of(owner: str) -> str:
    return f'[ "$address" = {_address(owner)} ]'


def _process(owner: str) -> str:
    """Return the part ``run@host:pid`` of the name of a hold, ``run@host:pid:time``."""
    return owner.rpartition(":")[0]
