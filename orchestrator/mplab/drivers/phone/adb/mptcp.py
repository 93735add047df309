"""Restore a phone's upstream Multipath TCP settings, which transports change in each cell."""

import re

from mplab.drivers.phone.adb.phone import AdbPhone

_KNOBS = "/proc/sys/net/mptcp"
_KEPT = ("enabled", "blackhole_timeout")
_LOOK = f"cd {_KNOBS} && grep . {' '.join(_KEPT)} 2>/dev/null; ip mptcp limits show && ip mptcp endpoint show"


def keep_mptcp(phone: AdbPhone) -> None:
    """Register an undo that restores MPTCP endpoints, limits and sysctls when the phone is released.

    If this process is killed, a later process runs the undo from the undo journal. Does nothing when the kernel or the
    ``ip`` of the phone does not support MPTCP.

    Raises:
        DeviceError: the phone is lost.
    """
    found = phone.script(_LOOK, check=False)
    if found.exit_code == 0:
        phone.register(f"{phone.label}: MPTCP", undo_script(found.stdout))


def undo_script(shown: str) -> str:
    """Return shell lines, to be run as root, that restore the state `shown`.

    `shown` has lines such as ``enabled:1``, ``add_addr_accepted 0 subflows 2`` and
    ``10.0.0.2 id 1 subflow dev wlan0``.
    """
    lines = ["ip mptcp endpoint flush"]
    for line in map(str.strip, shown.splitlines()):
        if limits := re.fullmatch(r"add_addr_accepted (\d+) subflows (\d+)", line):
            lines.append(f"ip mptcp limits set subflow {limits[2]} add_addr_accepted {limits[1]}")
        elif knob := re.fullmatch(rf"({'|'.join(_KEPT)}):(\d+)", line):
            lines.append(f"echo {knob[2]} > {_KNOBS}/{knob[1]}")
        elif re.fullmatch(r"[0-9a-f.:]+ id \d+ [\w ]+", line):
            lines.append(f"ip mptcp endpoint add {line}")
    return "\n".join(lines)
