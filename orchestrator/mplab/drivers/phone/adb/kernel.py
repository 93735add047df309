"""Detect the Multipath TCP of a phone's kernel: none, upstream (Linux 5.6 and later), or out-of-tree (0.8x, 0.9x)."""

import re
from collections.abc import Mapping

from mplab.drivers.phone.adb.answers import asking, split_answers
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.kernel import KernelMptcp

_NO_DEVICE = "mplab-none"
"""Name of a device that does not exist, for ``ip link set dev X multipath on``.

An ``ip`` that knows ``multipath`` complains about the device; another one complains about the word ``multipath``."""
_ASKED = {
    "sysctls": "cd /proc/sys/net/mptcp && grep . *",
    "release": "uname -r",
    "log": "dmesg | grep -i 'MPTCP: Stable release' | tail -n 1",
    "endpoints": "ip mptcp endpoint show 2>&1 && echo mplab-known",
    "multipath": f"ip link set dev {_NO_DEVICE} multipath on 2>&1",
    "congestion": "cat /proc/sys/net/ipv4/tcp_available_congestion_control",
}
_VERSION = re.compile(r"mptcp[-_. v]*(0\.\d+)|Stable release v(0\.\d+)", re.IGNORECASE)


def read_kernel(phone: AdbPhone) -> KernelMptcp:
    """Read the phone's kernel and its Multipath TCP. Raises DeviceError when the phone is lost."""
    return parse_kernel(split_answers(phone.script(asking(_ASKED), check=False).stdout))


def parse_kernel(answers: Mapping[str, str]) -> KernelMptcp:
    """Parse the outputs of the commands in `_ASKED`, by name of command."""
    pairs = (line.partition(":") for line in answers.get("sysctls", "").splitlines())
    sysctls = {name: value.strip() for name, colon, value in pairs if colon}
    congestion = tuple(answers.get("congestion", "").split())
    if "mptcp_enabled" in sysctls:
        found = _VERSION.search(answers.get("log", "")) or _VERSION.search(answers.get("release", ""))
        return KernelMptcp(
            kind="out-of-tree",
            version=(found[1] or found[2]) if found else "",
            enabled=sysctls["mptcp_enabled"] != "0",
            path_manager=sysctls.get("mptcp_path_manager", ""),
            scheduler=sysctls.get("mptcp_scheduler", "default"),
            multipath=_knows_multipath(answers.get("multipath", "")),
            sysctls=sysctls,
            congestion_controls=congestion,
        )
    if "enabled" in sysctls:
        return KernelMptcp(
            kind="upstream",
            enabled=sysctls["enabled"] != "0",
            endpoints=answers.get("endpoints", "").split()[-1:] == ["mplab-known"],
            sysctls=sysctls,
            congestion_controls=congestion,
        )
    return KernelMptcp(congestion_controls=congestion)


def _knows_multipath(said: str) -> bool:
    return "garbage" not in said and "not found" not in said
