"""Allow one holder for each kernel, even if lab files have several names for a machine.

Routers, servers and phones have different folders for the files of a hold, but ifb devices and filter priorities belong
to the kernel. Two holders of one kernel would remove each other's devices and filters. Therefore each hold also owns a
token: an ifb device without traffic. The kernel allows the device's name only once per network namespace. The hardware
address of the device, set when it is made, identifies the owner.
"""

import hashlib

from mplab.drivers.shaper.tc import guard
from mplab.drivers.shaper.tc.shell import quote

DEVICE = "mplab-held"
UNDO_NAME = "00-kernel"
"""Name of the undo script that releases the token; it runs last."""
HELD = 78
"""Exit code of `claim_script`: another owner has the token; the output names it."""

_LONGEST_ALIAS = 255
_READ_ADDRESS = f"address=; [ ! -e /sys/class/net/{DEVICE} ] || read -r address </sys/class/net/{DEVICE}/address"


def claim_script(owner: str, name: str) -> str:
    """Return a script that takes the token, or keeps it if `owner` already has it.

    The script succeeds without a token on a kernel without ifb; such a machine cannot shape either.

    Args:
        owner: name of the hold; see `Owner.token`.
        name: name by which the owner's lab file knows the machine.
    """
    folder, alias = f"/sys/class/net/{DEVICE}", f"{owner} {name}"[:_LONGEST_ALIAS]
    return "\n".join(
        [
            f"ip link add name {DEVICE} address {_address(owner)} type ifb 2>/dev/null",
            f"{_READ_ADDRESS}; if {_is_of(owner)}; then printf '%s' {quote(alias)} >{folder}/ifalias; return 0; fi",
            f"[ ! -e {folder} ] || {{ cat {folder}/ifalias; return {HELD}; }}",
        ]
    )


def release_script(owner: str) -> str:
    """Return a script that deletes the token if it belongs to `owner`."""
    return f"{_READ_ADDRESS}; ! {_is_of(owner)} || ip link del {DEVICE}\n"


def refusal(alias: str, owner: str) -> str:
    """Return why `owner` does not get the token, and the remedy; `alias` is the output of `claim_script`."""
    other, _, name = alias.strip().partition(" ")
    if _process(other) == _process(owner):
        return f"held by this run already, as {name}: one machine needs one entry in the lab file"
    return f"held by {other}, as {name}: {guard.WAIT}"


def _address(owner: str) -> str:
    """Return a locally administered hardware address derived from the owner."""
    digits = hashlib.sha256(owner.encode()).hexdigest()
    return ":".join(["02", *(digits[at : at + 2] for at in range(0, 10, 2))])


def _is_of(owner: str) -> str:
    return f'[ "$address" = {_address(owner)} ]'


def _process(owner: str) -> str:
    """Return ``run@host:pid`` of ``run@host:pid:time``."""
    return owner.rpartition(":")[0]
