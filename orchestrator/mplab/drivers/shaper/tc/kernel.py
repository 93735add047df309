"""One holder for each kernel, whatever lab files call the machine.

Routers, servers and phones keep their notes in different folders, but ifb devices and the priorities of filters are the
kernel's: two that hold one machine would take each other's away. So who holds a place holds a token there, too: an ifb
device that carries nothing. The kernel (of one network namespace) gives its name away once, and its hardware address,
which it has from the beginning, says whose it is.
"""

import hashlib

from mplab.drivers.shaper.tc import guard
from mplab.drivers.shaper.tc.shell import quote

DEVICE = "mplab-held"
UNDO_NAME = "00-kernel"
"""Given back last."""
HELD = 78
"""Exit code of `claim_script`: it is somebody else's, as its output says."""

_LONGEST_ALIAS = 255
_READ_ADDRESS = f"address=; [ ! -e /sys/class/net/{DEVICE} ] || read -r address </sys/class/net/{DEVICE}/address"


def claim_script(owner: str, name: str) -> str:
    """Takes the token; again when it is `owner`'s already. `name` is what `owner` calls the place.

    Without ifb there is no token, and nothing that could be shaped either.
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
    """Gives the token back when it is `owner`'s."""
    return f"{_READ_ADDRESS}; ! {_is_of(owner)} || ip link del {DEVICE}\n"


def refusal(alias: str, owner: str) -> str:
    """Why `owner` does not get the token, and what to do; `alias` is the output of `claim_script`."""
    other, _, name = alias.strip().partition(" ")
    if _process(other) == _process(owner):
        return f"held by this run already, as {name}: one machine needs one entry in the lab file"
    return f"held by {other}, as {name}: {guard.WAIT}"


def _address(owner: str) -> str:
    """A hardware address that is nobody's: administered locally."""
    digits = hashlib.sha256(owner.encode()).hexdigest()
    return ":".join(["02", *(digits[at : at + 2] for at in range(0, 10, 2))])


def _is_of(owner: str) -> str:
    return f'[ "$address" = {_address(owner)} ]'


def _process(owner: str) -> str:
    """``run@host:pid`` of ``run@host:pid:time``."""
    return owner.rpartition(":")[0]
